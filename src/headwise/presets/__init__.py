"""The recipes that come with headwise, one commented TOML file each."""
