"""Commands that build and run programs in Java, for the `row.py` of their folders."""

# A program of a test needs no large heap and soon ends, and its machine has other work.
JAVA = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CLASSES = ("-cp", "target/classes:target/lib/*")
INSTALL = (("mvn", "--quiet", "--batch-mode", "process-classes"),)
PROGRAMS = (("mvn", "maven"), ("javac", "openjdk-17-jdk-headless"))
