"""`python -m bench`: every measurement, one after the other."""

from bench import apply, check, discover, hooks, render, start

if __name__ == "__main__":
    start.main()
    discover.main()
    apply.main()
    render.main()
    check.main()
    hooks.main()
