#!/bin/sh
# Compiles through ccache: ccache.sh CCACHE COMPILER ARGUMENT...
#
# A precompiled header that is made anew goes first: the preprocessor would find it by
# its name, so that ccache would tell two versions of the headers by the old result, and
# give one tree what another has made. It holds the headers' checksums, and a header that
# changed without changing what is compiled (a comment, the order of its includes) would be
# included again beside it: ccache compares its headers one by one, and not their text after
# the preprocessor. The sloppiness lets ccache keep objects that were made with precompiled
# headers.
ccache=$1
shift
before=
for argument in "$@"; do
  case "$before $argument" in
    "-o "*.gch)
      rm -f "$argument"
      export CCACHE_DEPEND=1 ;;
  esac
  before=$argument
done
CCACHE_SLOPPINESS=pch_defines,time_macros exec "$ccache" "$@"
