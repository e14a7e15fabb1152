from compat.applications.application import Application

APPLICATION = Application(
    name="nestjs",
    language="Node",
    version="11.1.9",
    command=("node", "dist/jobs.js"),
    install=(
        ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"),
        ("npm", "run", "build"),
    ),
    programs=(("node", "nodejs"), ("npm", "npm")),
    refusal=r"Error: .*",
)
