"""What tests/transcripts compares two servers with, and what makes its commands."""
