#!/bin/sh
# Jobs with Symfony Messenger: `serve` works them off, `submit FIRST COUNT SIZE` sends some.

# The console breaks lines at this width, also those of errors that are looked for in the log.
export COLUMNS=500

if [ "$1" != serve ]; then
  exec php jobs.php "$@"
fi

# A worker of Messenger ends when it loses the broker. Its users run it under a program that starts it again.
trap 'kill $worker; wait $worker; exit' TERM
while :; do
  php jobs.php messenger:consume jobs --sleep=0.1 &
  worker=$!
  wait $worker
  sleep 1
done
