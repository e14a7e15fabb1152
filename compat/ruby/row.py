from compat.matrix.rows import Row

ROWS = (
    Row(
        name="bunny",
        language="Ruby",
        version="2.19.0",  # Debian's
        command=("ruby", "play.rb"),
        # Results of another version must not appear under this one.
        install=(("ruby", "-e", 'gem "bunny", "2.19.0"; require "bunny"'),),
        programs=(("ruby", "ruby"), ("bunny", "ruby-bunny")),
    ),
)
