"""`python -m bench`: every measurement, one after the other."""

from bench import check, render, start

if __name__ == "__main__":
    start.main()
    render.main()
    check.main()
