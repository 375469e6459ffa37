#!/bin/sh
# Takes one fix at a time out of a copy of this tree, and runs the case that is
# there for it: it must fail. testdata/unfix/*.patch say in their first line what
# is taken out, in their second the command, and then how.
#
#	fuzz/unfix.sh            all of them
#	fuzz/unfix.sh 62 R1      those whose names begin so
#
# Exit status 1 when a patch no longer applies, or a case does not notice.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT INT TERM
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C "$copy"
cd "$copy" || exit 1
git init -q . && git add -A >/dev/null && git -c user.name=x -c user.email=x@x commit -qm x || exit 1

status=0
for patch in "$root"/testdata/unfix/*.patch; do
	name=$(basename "$patch" .patch)
	if [ $# -gt 0 ]; then
		wanted=
		for w in "$@"; do case $name in "$w"*) wanted=1 ;; esac; done
		[ -n "$wanted" ] || continue
	fi
	what=$(sed -n 1p "$patch")
	command=$(sed -n 2p "$patch")
	if ! git apply --recount "$patch" 2>"$copy/.out"; then
		echo "DOES NOT APPLY  $name: $(head -1 "$copy/.out")"
		status=1
		continue
	fi
	if sh -c "$command" >"$copy/.out" 2>&1; then
		echo "NOT NOTICED     $name: $what; $command"
		status=1
	elif grep -q -e '--- FAIL' -e '^panic:' -e '^fatal error:' "$copy/.out"; then
		echo "red             $name: $what; $command"
	else
		echo "DOES NOT BUILD  $name: $(grep -m1 '\.go:' "$copy/.out")"
		status=1
	fi
	git checkout -q .
done
exit $status
