"""One report in the formats that people, CI services and editors read."""
