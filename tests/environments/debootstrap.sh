# Create the root folder of a Debian release, once: debootstrap.sh RELEASE FOLDER. The mirror is that of this machine's apt.
release=$1 folder=$2
[ ! -e "$folder" ] || exit 0
mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
  awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ { sub("/$", "", $4); print $4; exit }')
test -n "$mirror" || { echo "apt has no mirror of Debian" >&2; exit 69; }
mkdir -p "$(dirname "$folder")"
rm -rf "$folder.new"
trap 'rm -rf "$folder.new"' EXIT
# debootstrap has no script for a release newer than itself.
scripts=/usr/share/debootstrap/scripts
script=$scripts/$release
[ -e "$script" ] || script=$scripts/sid
debootstrap --variant=minbase --include=git,make,python3,python3-venv "$release" "$folder.new" "$mirror" "$script" >&2
rm -rf "$folder.new/var/cache/apt/archives" "$folder.new/var/lib/apt/lists"
chroot "$folder.new" useradd --create-home --uid 61234 tester
mv "$folder.new" "$folder"
