"""Site to text: a pure fold, the same bytes for the same Site, refused when the text does not offer what was asked."""
