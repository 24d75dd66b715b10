"""Pictures drawn with matplotlib, which is imported when the first one is drawn."""
