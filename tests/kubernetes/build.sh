# Build Kubernetes' API server, scheduler and controllers from Debian's sources, and unpack Debian's etcd and kubectl:
# build.sh MIRROR FOLDER. The folder is new; programs are in it at the end.
set -euo pipefail
mirror=$1 folder=$2 release=bookworm
packages=(golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev etcd-server kubernetes-client)
tags=providerless,dockerless,nolegacyproviders

# An apt of its own, which installs nothing.
mkdir -p "$folder"/build/{lists/partial,archives/partial,sources,packages}
cd "$folder/build"
: >status
signed="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
printf "%s $signed $mirror $release main\n" deb deb-src >sources.list
cat >apt.conf <<END
Dir::State "$PWD"; Dir::State::lists "$PWD/lists"; Dir::State::status "$PWD/status";
Dir::Cache "$PWD"; Dir::Cache::archives "$PWD/archives";
Dir::Etc::SourceList "$PWD/sources.list"; Dir::Etc::SourceParts "/dev/null";
Acquire::Languages "none"; APT::Sandbox::User "";
END
export APT_CONFIG=$PWD/apt.conf
apt-get -qq update
(cd archives && apt-get -qq download "${packages[@]}")
(cd archives && apt-get -qq source --download-only kubernetes)
for package in archives/*.deb; do
  dpkg -x "$package" packages
done

# The sources contain all that they need, in the layout that Go had before modules.
export GOROOT=$PWD/packages/usr/lib/go-1.19 GOPATH=$PWD/go GOCACHE=$PWD/cache GOTMPDIR=$PWD
export GO111MODULE=off GOFLAGS='' GOTOOLCHAIN=local CGO_ENABLED=0
export PATH=$GOROOT/bin:$PATH
mkdir -p "$GOPATH/src/k8s.io/kubernetes"
cd "$GOPATH/src/k8s.io/kubernetes"
tar -xzf "$folder"/build/archives/kubernetes_*.orig.tar.gz --strip-components=1
# The library that they contain is older than this Go, and fails with it.
rm -r vendor/github.com/modern-go/reflect2
cp -r "$folder/build/packages/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/
# Upstream's change 98576, of 1.21: without it, the server refuses the ports of Spark's services.
default='// +default="TCP"'
sed -i "s|^\tProtocol Protocol .json:\"protocol,omitempty\" protobuf:\"bytes,2,|\t$default\n&|" \
  staging/src/k8s.io/api/core/v1/types.go
version=$(cd "$folder/build/archives" && ls kubernetes_*.orig.tar.gz)
version=${version%.orig.tar.gz}
version=v${version##*really}

# The one file that upstream generates before each build.
api=pkg/generated/openapi
go build -o "$folder/build/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
described=$(grep -rl --include=*.go -F '+k8s:openapi-gen=true' staging/src/k8s.io pkg | xargs -n1 dirname | sort -u |
  grep -vE 'sample|_examples|testdata|generators|/test/|pkg/generated' |
  sed -E 's#^staging/src/#k8s.io/kubernetes/vendor/#; s#^pkg/#k8s.io/kubernetes/pkg/#' | paste -sd,)
"$folder/build/openapi-gen" --output-file-base zz_generated.openapi --output-base "$GOPATH/src" \
  --output-package k8s.io/kubernetes/$api --go-header-file hack/boilerplate/boilerplate.generatego.txt \
  --report-filename /dev/null --input-dirs "$described"

stamp=k8s.io/kubernetes/vendor/k8s.io/component-base/version
minor=${version#v*.}
flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}"
for program in kube-apiserver kube-scheduler kube-controller-manager; do
  go build -tags $tags -ldflags "$flags" -o "$folder/$program" ./cmd/$program
done
cp "$folder"/build/packages/usr/bin/{etcd,kubectl} "$folder"
chmod -R u+w "$folder/build"
rm -r "$folder/build"
