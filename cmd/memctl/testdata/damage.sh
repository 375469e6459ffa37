#!/bin/sh
# damage.sh STORE: does thirty-six kinds of damage to copies of a store, one after
# another, and shows what memctl verify says and what memctl repair does. Each time
# verify must find it (exit 2: healable), repair must heal it, verify must be 0
# afterwards, every memory and assembly must be what it was, and a search must find
# what it found. STORE itself stays as it is.
# It needs memctl, git, dd, cp -a and a grep that knows -abo.
set -eu
LC_ALL=C; export LC_ALL
store=$(cd "$1" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/damage.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset VARVE_STORE

flip() { # FILE OFFSET: another byte, the same time
	touch -r "$1" "$work/time"
	was=$(dd if="$1" bs=1 skip="$2" count=1 2>/dev/null | od -An -tu1)
	byte=x; [ "$was" -eq 120 ] && byte=y
	printf "$byte" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
	touch -r "$work/time" "$1"
}
nth() { ls memories | sed -n "$1p"; }
segment() { ls wal/*.wal | sed -n "${1:-1}p"; }
offset() { grep -abo "$1" "$2" | tail -n 1 | cut -d: -f1; }

cp -a "$store" "$work/sound"
cd "$work"
cp sound/memory_index.json old.json
id() { sed -n 's/^  "id": "\(.*\)",$/\1/p' "sound/memories/$(ls sound/memories | sed -n "$1p")"; }
like=$(id 7)
memctl assembly put --id pair --name 'two of them' "$like" "$(id 8)" -q --store sound
memctl assembly put --id more "$(id 9)" "$(id 10)" "$(id 11)" -q --store sound
memctl flush -q --store sound
cp -a sound/vector_index oldvectors
memctl assembly add more "$(id 12)" -q --store sound
memctl put 'the very last' --id the-very-last -q --store sound
memctl flush -q --store sound
said() { # STORE: all that it holds, and finds
	memctl export --file all.jsonl -q --store "$1" > /dev/null
	sort all.jsonl
	memctl search --like "$like" --limit 400 -q --store "$1"
	memctl assembly list -q --store "$1"
}
said sound > before
count=$(ls sound/memories | wc -l)
kinds=0

damage() { # NAME CODE COMMAND
	kinds=$((kinds + 1))
	echo "== $kinds. $1"
	rm -rf store; cp -a sound store
	cd store; eval "$3"; cd ..
	code=0; memctl verify --store store > said || code=$?
	grep -v -e 'info)' -e 'reading the file takes' -e 'by: adoption' -e 'more; --json' said || true
	[ "$code" -eq "$2" ] || { cat said; echo "verify: exit $code, want $2"; exit 1; }
	code=0; memctl repair --store store > plan || code=$?
	[ "$code" -eq "$2" ] || { cat plan; echo "repair: exit $code, want $2"; exit 1; }
	memctl repair --apply --store store 2> notes
	memctl verify --store store > said || { cat said; exit 1; }
	said store > after
	cmp before after || { diff before after | cut -c 1-200 | head; exit 1; }
}

damage 'the index is deleted'            2 'rm memory_index.json'
damage 'the index is empty'              2 ': > memory_index.json'
damage 'the index is {}'                 2 'echo {} > memory_index.json'
damage 'an old index is swapped in'      2 'cp ../old.json memory_index.json'
damage 'the index is cut in half'        2 'truncate -s 2000 memory_index.json'
damage 'a segment is deleted'            2 'rm $(segment)'
damage 'wal/ is deleted'                 2 'rm -r wal'
damage 'a bit in a memory'               2 'flip memories/$(nth 7) 30'
damage 'a bit in a segment'              2 'flip $(segment) 3000'
damage 'a bit in the last acknowledged frame, after a clean close' 2 'flip $(segment) $(offset "the very last" $(segment))'
damage 'a memory is truncated'           2 'truncate -s 60 memories/$(nth 7)'
damage 'a memory is empty'               2 ': > memories/$(nth 7)'
damage 'a file lies under another name'  2 'cp memories/$(nth 7) memories/copy.json'
damage 'ten files are deleted'           2 'for i in 1 1 1 1 1 1 1 1 1 1; do rm memories/$(nth $i); done'
damage 'strangers'                       2 'echo "{\"id\": " > memories/junk.json; ln -s /etc/passwd memories/link.json; echo mine > memories/notes.txt'
damage 'merge-conflict markers'          2 'n=memories/$(nth 7); { echo "<<<<<<< HEAD"; cat $n; echo "======="; cat $n; echo ">>>>>>> other"; } > x; mv x $n'
damage 'temp files are left'             0 'mkdir -p tmp/0123456789abcdef/0; echo half > tmp/0123456789abcdef/0/1; echo x > wal/7-1.new'
damage 'the folder is copied, both are used' 0 'cp -a . ../copied; memctl put both --id both --store ../copied -q; memctl verify -q --store ../copied > /dev/null; rm -r ../copied'
damage 'it is cloned by git'             2 'git init -q; git add .; git -c user.name=x -c user.email=x@x commit -qm x; git clone -q . ../clone; cd ..; rm -rf store; mv clone store; cd store; rm -rf .git'
damage 'the checkpoint is deleted'       2 'rm checkpoint'
damage 'both slots of the checkpoint'    2 'flip checkpoint 20; flip checkpoint 4116'
damage 'a slip of the pen in config.json' 2 'echo "{\"varve\":1,\"flush_threshold\":-4}" > config.json'
faiss=vector_index/memory_vectors.faiss
damage 'vector_index/ is deleted'        2 'rm -r vector_index'
damage 'vector_index/ is empty'          2 'rm vector_index/*'
damage 'the FAISS file is truncated'     2 'truncate -s 3000 $faiss'
damage 'the FAISS file is deleted'       2 'rm $faiss'
damage 'a bit in a vector'               2 'flip $faiss 1500'
damage 'a bit in mapping.json'           2 'flip vector_index/mapping.json 40'
damage 'mapping.json is {}'              2 'echo {} > vector_index/mapping.json'
damage 'old vectors are swapped in'      2 'rm -r vector_index; cp -a ../oldvectors vector_index'
damage 'an assembly is deleted'          2 'rm assemblies/pair.json'
damage 'assemblies/ is deleted'          2 'rm -r assemblies'
damage 'a bit in an assembly'            2 'flip assemblies/pair.json 30'
damage 'an assembly is truncated'        2 'truncate -s 60 assemblies/more.json'
damage 'merge-conflict markers in an assembly' 2 'n=assemblies/pair.json; { echo "<<<<<<< HEAD"; cat $n; echo "======="; cat $n; echo ">>>>>>> other"; } > x; mv x $n'
damage 'the file of a member is deleted, and the vectors' 2 'rm memories/$(nth 8); rm -r vector_index'
echo "== $kinds kinds of damage healed, each time all $count memories and both assemblies as they were"
