"""Makes the folder that a machine with a GPU needs to run Mica and `scripts/gpu/report.py`.

    gpu_bundle.py --out .gpu --wheel mica-*-cp312-*.whl --plugin build/cuda/mica_cuda.so

That machine has Python with NumPy and torch, and no network. The folder holds `site.tar.xz`
(Mica and the two libraries that it names, unpacked from their wheels), the plugins, the
programs of scripts/gpu, the digits and `setup.sh`, which unpacks it all to /tmp/mica and sets
PYTHONPATH and MICA_PLUGINS. Without --wheel one is built for --python; a plugin that the wheel
has needs no --plugin. With --carry cache.tgz the kernels that an earlier run compiled go along.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEGABYTES = 60
LIBRARIES = ("onednn-cpu-gomp==2023.2.0", "scipy-openblas32==0.3.34.*")
PLATFORMS = ("manylinux1", "manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28")
# What a program does not read when it runs.
UNUSED = ("share/doc", "bin", "scipy_openblas32/include", "scipy_openblas32/lib/cmake")
SETUP = """# Source this: it unpacks Mica to {site} (once) and sets the environment.
mica_bundle=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
if [ ! -f {site}/unpacked ]; then
  mkdir -p {site}
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter="data")' \\
    "$mica_bundle/site.tar.xz" {site} && touch {site}/unpacked
fi
if [ -f "$mica_bundle/cache.tgz" ]; then  # compiled kernels that an earlier run brought back
  mkdir -p "${{XDG_CACHE_HOME:-$HOME/.cache}}" && tar xzf "$mica_bundle/cache.tgz" -C "${{XDG_CACHE_HOME:-$HOME/.cache}}"
fi
export PYTHONPATH={site}${{PYTHONPATH:+:$PYTHONPATH}} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export MICA_PLUGINS={plugins}
"""


def libraries(folder: Path) -> list[Path]:
    """The wheels of the libraries, downloaded for x86-64 and kept in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    if len(list(folder.glob("*.whl"))) < len(LIBRARIES):
        platforms = [f"--platform={name}_x86_64" for name in PLATFORMS]
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*pip, *platforms, "-d", str(folder), *LIBRARIES], check=True)
    return sorted(folder.glob("*.whl"))


def unpack(wheel: Path, site: Path) -> None:
    """What pip would put into site-packages; a wheel's own lib/ goes beside libmica, where it is looked for."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            _, data, inside = info.filename.partition(".data/")
            if data and inside.startswith("data/lib/"):
                name = inside.rpartition("/")[2]
                if name != "libdnnl.so.3":  # the wheel has the file under three names
                    continue
                target = site / "mica" / "lib" / name
            elif data:
                continue
            else:
                target = site / info.filename
            if info.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file)
            if mode := info.external_attr >> 16:
                target.chmod(mode & 0o777 | 0o600)


def make_site(wheels: list[Path], archive: Path) -> None:
    """Writes the archive of what the wheels hold, without what no program reads."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        for wheel in wheels:
            unpack(wheel, site)
        for name in UNUSED:
            shutil.rmtree(site / name, ignore_errors=True)
        with tarfile.open(archive, "w:xz", preset=6) as tar:
            for path in sorted(site.iterdir()):
                tar.add(path, path.name)


def copy_plugin(path: Path, folder: Path) -> str:
    """Copies a plugin and the JSON that describes it; its name."""
    folder.mkdir(exist_ok=True)
    description = path.with_name(path.name.removeprefix("mica_")).with_suffix(".json")
    for file in (path, description):
        if file.exists():
            shutil.copy(file, folder / file.name)
        elif file == path:
            raise SystemExit(f"The plugin ({path}) does not exist.")
    return path.name


def built_wheel(python: str | None, cache: Path) -> Path:
    from build_wheels import build

    if python is None:
        raise SystemExit("Name a wheel (--wheel) or the Python to build one for (--python).")
    cache.mkdir(parents=True, exist_ok=True)
    for old in cache.glob("mica-*.whl"):
        old.unlink()
    return build(python, cache)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder; what it holds is replaced")
    parser.add_argument("--wheel", type=Path, help="Mica's wheel for the Python there")
    parser.add_argument("--python", help="builds the wheel with this interpreter's pip")
    parser.add_argument("--plugin", type=Path, action="append", default=[], help="mica_x.so; may be repeated")
    parser.add_argument(
        "--carry", type=Path, action="append", default=[], help="another file; may be repeated"
    )
    parser.add_argument("--site", default="/tmp/mica", help="where it is unpacked (default: /tmp/mica)")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/mica_gpu_bundle"), help="for downloads")
    arguments = parser.parse_args()
    out: Path = arguments.out
    wheel = arguments.wheel or built_wheel(arguments.python, arguments.cache / "wheel")
    out.mkdir(parents=True, exist_ok=True)
    for old in ("plugins", "gpu", "digits", "tests"):
        shutil.rmtree(out / old, ignore_errors=True)

    # The archive takes half a minute: it is made anew only for another wheel.
    kept = arguments.cache / f"{wheel.stem}-{wheel.stat().st_size}-{int(wheel.stat().st_mtime)}.tar.xz"
    if not kept.exists():
        found = libraries(arguments.cache / "libraries")
        partial = kept.with_suffix(".partial")
        make_site([wheel, *found], partial)
        partial.rename(kept)
    shutil.copy(kept, out / "site.tar.xz")

    plugins = [f"$mica_bundle/plugins/{copy_plugin(p, out / 'plugins')}" for p in arguments.plugin]
    text = SETUP.format(site=arguments.site, plugins=":".join(plugins) or "${MICA_PLUGINS:-}")
    (out / "setup.sh").write_text(text)
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "scripts" / "gpu", out / "gpu", ignore=skip)
    shutil.copytree(ROOT / "examples" / "digits", out / "digits", ignore=skip)
    shutil.copytree(ROOT / "test" / "gpu", out / "tests", ignore=skip)
    shutil.copy(ROOT / "test" / "support" / "process.py", out / "tests")
    for file in arguments.carry:
        shutil.copy(file, out / file.name)

    files = sorted(path for path in out.rglob("*") if path.is_file())
    for path in files:
        if path.stat().st_size > 100_000:
            print(f"{path.stat().st_size / 1e6:7.1f} MB  {path.relative_to(out)}")
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{size:7.1f} MB  in {out}, of {MEGABYTES} MB")
    return 0 if size <= MEGABYTES else 1


if __name__ == "__main__":
    sys.exit(main())
