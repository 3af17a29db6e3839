# Holds nothing itself; jedi does not look into folders without this file.
