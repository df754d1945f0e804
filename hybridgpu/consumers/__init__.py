"""What the real programs do with a file. The only place that knows; judged from outside, by the programs themselves."""
