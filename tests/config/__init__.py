"""Configuration: loading, checking, showing, comparing."""
