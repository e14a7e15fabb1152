from compat.matrix.rows import Row

ROWS = (
    Row(
        name="bunny",
        language="Ruby",
        version="2.19.0",  # Debian's
        command=("ruby", "play.rb"),
        # Another version is not to be told under this one's name.
        install=(("ruby", "-e", 'gem "bunny", "2.19.0"; require "bunny"'),),
        programs=(("ruby", "ruby"), ("bunny", "ruby-bunny")),
    ),
)
