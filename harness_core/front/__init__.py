"""What pytest, nox and a person see: the plugin, the command line, the scaffold, CI's reports."""
