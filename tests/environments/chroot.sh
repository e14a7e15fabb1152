# Run a command in the working folder, as a user without root, in a copy of a root: chroot.sh FOLDER ROOT COMMAND...
# The caller provides new namespaces, so all mounts and processes end with this script.
folder=$1 root=$2
shift 2
new=$folder/chroot/root
mkdir -p "$folder/chroot/upper" "$folder/chroot/scratch" "$new"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$folder/chroot/upper,workdir=$folder/chroot/scratch" "$new"
mount -t proc proc "$new/proc"
mount --rbind /dev "$new/dev"
cp -L /etc/resolv.conf "$new/etc/resolv.conf"
# Debian's installer writes this file.
[ -e "$new/etc/hosts" ] || printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' >"$new/etc/hosts"
chroot "$new" id tester >/dev/null 2>&1 || chroot "$new" useradd --create-home --uid 61234 tester
mkdir -p "$new/clone"
chown -R 61234:61234 .
mount --bind . "$new/clone"
# Keep only the variables for package sources, and the certificates of these sources.
for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p'); do
  eval "value=\$$name"
  case $name in
    PATH | CI | TERM | GOPROXY | GOSUMDB | GONOSUMDB | GOPRIVATE | PIP_*INDEX_URL | *_proxy | *_PROXY) ;;
    *_CERT | *_CERT_FILE | *_CA_BUNDLE)
      [ -f "$value" ] || { unset "$name"; continue; }
      mkdir -p "$new$(dirname "$value")"
      cp -L "$value" "$new$value"
      ;;
    *) unset "$name" ;;
  esac
done
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/home/tester USER=tester LOGNAME=tester LANG=C.UTF-8
exec chroot --userspec=61234:61234 "$new" sh -c 'cd /clone && exec "$@"' sh "$@"
