"""The demo's job: read every file of a folder, one session a file, and combine what was found."""
