# Run a command in the root of a Debian release, beside this machine's own files: enter_root.sh ROOT FOLDER COMMAND...
# The release provides programs and configuration; all other folders, and FOLDER, are this machine's and keep their paths.
# The caller provides new namespaces, so all mounts and processes end with this script.
root=$1 folder=$2
shift 2
scratch=$folder/root
mkdir -p "$scratch"
mount -t tmpfs tmpfs "$scratch"
new=$scratch/merged
mkdir "$scratch/upper" "$scratch/work" "$new"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$scratch/upper,workdir=$scratch/work" "$new"
cp -L /etc/hosts /etc/resolv.conf "$new/etc/"
for place in /* "$folder"; do
  case $place in
    /bin | /boot | /etc | /lib* | /proc | /sbin | /usr | /var) ;;
    *)
      if [ -d "$place" ]; then
        mkdir -p "$new$place"
        mount --rbind "$place" "$new$place"
      fi
      ;;
  esac
done
mount -t proc proc "$new/proc"
exec chroot "$new" "$@"
