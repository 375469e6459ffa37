package fuzz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/sim"
)

// edit is a file saved by hand. It may be adopted at any time, as a write that no caller requested; in
// any case its bytes are kept somewhere.
type edit struct {
	w    *write
	done bool // saved, synced and named before anything was cut
	gone bool // another edit by hand overwrote it, or it was adopted
}

// editor is a user who edits the files of a store in use, with tools that do not know the store.
type editor struct {
	h     *history
	fsys  vfs.FS
	rng   *rand.Rand
	sleep func(time.Duration)
	// A save in place that a loss of power tears is not the store's fault: if power may be cut, editors
	// save only by renaming.
	byRename bool
	n        int
}

// Only these are edited in ways that may lose a memory.
var harmable = []string{"a", "k07", "n0", "n1"}

func (e *editor) step() error {
	id := ids[e.rng.IntN(len(ids))]
	path := filepath.Join(e.h.dir, "memories", jsondoc.FileName(id))
	switch n := e.rng.IntN(12); {
	case n < 4 && !e.byRename:
		return e.inPlace(path)
	case n < 8:
		return e.replace(path, e.rng.IntN(3) == 0)
	case n == 8:
		return e.remove()
	case n == 9:
		return e.conflict()
	case n == 10:
		return e.create()
	}
	return nil
}

var contentMember = regexp.MustCompile(`"content": "(w\d{6}):[^"]*"`)

// begin derives the bytes of an edit from those of a file.
func (e *editor) begin(b []byte) (*edit, []byte) {
	m := contentMember.FindSubmatchIndex(b)
	if m == nil {
		return nil, nil
	}
	old := e.h.tokens[string(b[m[2]:m[3]])]
	if old == nil || bytes.HasPrefix(b, []byte("<")) {
		return nil, nil
	}
	w := e.h.begin(&write{id: old.id, size: old.size, session: old.session, expires: old.expires, hand: true, base: old.version, based: old.version != 0 && !old.hand})
	x := &edit{w: w}
	e.h.edits = append(e.h.edits, x)
	return x, slices.Concat(b[:m[0]], fmt.Appendf(nil, `"content": "%s"`, content(w.token, w.size)), b[m[1]:])
}

// over records that bytes were overwritten by a save.
func (h *history) over(b []byte) {
	for _, x := range h.edits {
		if bytes.Contains(b, []byte(x.w.token)) {
			x.gone = true
		}
	}
}

// inPlace opens a file, waits, and saves into the open file, wherever that is by now.
func (e *editor) inPlace(path string) error {
	f, err := e.fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return ignore(err)
	}
	defer f.Close()
	read := func() ([]byte, error) {
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		b := make([]byte, info.Size)
		n, err := f.ReadAt(b, 0)
		return b[:n], err
	}
	b, err := read()
	if err != nil {
		return err
	}
	e.sleep(time.Duration(e.rng.IntN(1000)) * time.Duration(e.rng.IntN(20000)) * time.Nanosecond)
	x, text := e.begin(b)
	if x == nil {
		return nil
	}
	now, err := read()
	if err != nil {
		return err
	}
	mine, err1 := f.Stat()
	there, err2 := e.fsys.Stat(path)
	if !bytes.Equal(now, b) || err1 != nil || err2 != nil || mine.Ino != there.Ino {
		x.w.based = false
	}
	e.h.over(now)
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(text))); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	x.done = true
	return nil
}

// replace saves a new file over the old one, at once or after a while.
func (e *editor) replace(path string, stale bool) error {
	b, err := vfs.ReadFile(e.fsys, path, 1<<30)
	if err != nil {
		return ignore(err)
	}
	if stale {
		e.sleep(time.Duration(e.rng.IntN(1000)) * time.Duration(e.rng.IntN(200000)) * time.Nanosecond)
	}
	x, text := e.begin(b)
	if x == nil {
		return nil
	}
	return e.put(x, text, b, path, false)
}

// put replaces what is at path by text.
func (e *editor) put(x *edit, text, read []byte, path string, onlyNew bool) error {
	e.n++
	temp := fmt.Sprintf("/edit-%d-%d", e.rng.Uint32(), e.n)
	f, err := e.fsys.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if onlyNew {
		err = e.fsys.RenameNew(temp, path)
	} else {
		var now []byte
		if now, err = vfs.ReadFile(e.fsys, path, 1<<30); err != nil && ignore(err) != nil {
			return err
		}
		if !bytes.Equal(now, read) {
			x.w.based = false
		}
		e.h.over(now)
		err = e.fsys.Rename(temp, path)
	}
	if err != nil {
		return ignore(err)
	}
	if err := e.fsys.SyncDir(filepath.Join(e.h.dir, "memories")); err != nil {
		return err
	}
	x.done = true
	return nil
}

func ignore(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, varve.ErrInvalid) {
		return nil // there is a folder by now
	}
	return err
}

func (e *editor) harm() (id, path string) {
	id = harmable[e.rng.IntN(2)]
	e.h.harm(id)
	return id, filepath.Join(e.h.dir, "memories", jsondoc.FileName(id))
}

func (h *history) harm(id string) {
	if h.harmed == nil {
		h.harmed = map[string]bool{}
	}
	h.harmed[id] = true
}

// remove deletes a file. That may be adopted at any time as a deletion, but not of a version that is
// written only afterwards.
func (e *editor) remove() error {
	id, path := e.harm()
	b, err := vfs.ReadFile(e.fsys, path, 1<<30)
	if err == nil {
		e.h.over(b)
		w := e.h.begin(&write{id: id, del: true, hand: true})
		err = e.fsys.Remove(path)
		w.end = e.h.now()
	}
	if err == nil && e.rng.IntN(3) == 0 {
		err = e.fsys.Mkdir(path, 0o700) // and something else is put in its place
	}
	return ignore(err)
}

// conflict writes a file with the conflict markers of git.
func (e *editor) conflict() error {
	_, path := e.harm()
	b, err := vfs.ReadFile(e.fsys, path, 1<<30)
	if err != nil {
		return ignore(err)
	}
	w := e.h.begin(&write{id: "by hand", hand: true})
	x := &edit{w: w}
	e.h.edits = append(e.h.edits, x)
	return e.put(x, slices.Concat([]byte("<<<<<<< HEAD "+w.token+"\n"), b, []byte("=======\n"), b, []byte(">>>>>>> other\n")), b, path, false)
}

// create creates a file for a memory that the store does not know, or not yet.
func (e *editor) create() error {
	id := harmable[2+e.rng.IntN(2)]
	path := filepath.Join(e.h.dir, "memories", jsondoc.FileName(id))
	if _, err := e.fsys.Stat(path); err == nil {
		return nil
	}
	e.h.harm(id)
	w := e.h.begin(&write{id: id, size: 60, hand: true})
	x := &edit{w: w}
	if _, err := e.fsys.Stat(filepath.Join(e.h.dir, "memory_index.json")); err != nil {
		x.gone = true // adopted by the first index, perhaps unreported because of a kill
	}
	e.h.edits = append(e.h.edits, x)
	text := fmt.Appendf(nil, "{\n  \"id\": %q,\n  \"content\": %q\n}\n", id, content(w.token, w.size))
	return e.put(x, text, nil, path, true)
}

// adopts returns a function that records the store's events about adopted edits.
func (h *history) adopts(disk func() *crash.Disk) func(varve.Event) {
	return func(ev varve.Event) {
		ids := []string{ev.ID}
		switch ev.Kind {
		case varve.EventAdopted:
		case varve.EventRebuilt: // of all existing files
			ids = nil
			for _, x := range h.edits {
				ids = append(ids, x.w.id)
			}
		default:
			return
		}
		d := disk()
		look := d.NonBlocking("listener")
		for _, id := range ids {
			b, _ := vfs.ReadFile(look, filepath.Join(h.dir, "memories", jsondoc.FileName(id)), 1<<30)
			h.over(b)
		}
		d.Kill(look)
	}
}

// kept checks, when all is quiet, that the bytes of every edit exist. The log counts: a process that
// adopted an edit may have been killed before it could report that. Compressed entries cannot be
// searched; with gaps, the archive may have released the bytes as well.
func (h *history) kept(fsys vfs.FS, kills, gaps bool) {
	var all []byte
	var walk func(folder string)
	walk = func(folder string) {
		names, err := fsys.ReadDir(folder)
		if err != nil {
			h.bad("looking for edits: %v", err)
		}
		for _, name := range names {
			path := filepath.Join(folder, name)
			info, err := fsys.Stat(path)
			if err == nil && info.Mode.IsDir() {
				walk(path)
				continue
			}
			b, err := vfs.ReadFile(fsys, path, 1<<30)
			if err != nil {
				h.bad("looking for edits: %v", err)
			}
			if strings.HasSuffix(name, ".zst") {
				b = inflated(b)
			}
			all = append(append(all, b...), '\n')
		}
	}
	for _, folder := range []string{"memories", "quarantine", "tmp", "wal"} {
		walk(filepath.Join(h.dir, folder))
	}
	seen := map[string]bool{}
	for _, o := range h.seen {
		seen[o.token] = true
	}
	for _, x := range h.edits {
		if kills && (gaps || x.w.size > 3000) {
			continue
		}
		if x.done && !x.gone && !seen[x.w.token] && !bytes.Contains(all, []byte(x.w.token)) {
			h.bad("an edit of %.20q is lost: %v", x.w.id, x.w)
		}
	}
}

// inflated returns the decompressed content of an archived segment; the format is described in
// wal/archive.go.
func inflated(b []byte) (plain []byte) {
	dec, err := zstd.NewReader(nil)
	if err != nil {
		return nil
	}
	defer dec.Close()
	for b = b[min(24, len(b)):]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b))
		plain, _ = dec.DecodeAll(b[16:min(16+n, len(b))], plain)
		b = b[min(16+n, len(b)):]
	}
	return plain
}

// edited reports whether an edit that waits to be adopted is in a place that no memory has.
func (h *history) edited(fsys vfs.FS, name string) bool {
	b, err := vfs.ReadFile(fsys, filepath.Join(h.dir, "memories", name), 1<<30)
	return err == nil && slices.ContainsFunc(h.edits, func(x *edit) bool { return bytes.Contains(b, []byte(x.w.token)) })
}

// tolerates reports whether the file that the error is about was removed by hand.
func (h *history) tolerates(err error, id string) bool {
	// ErrInvalid: a folder is in the place of the memory's file.
	return (errors.Is(err, varve.ErrCorrupt) || errors.Is(err, varve.ErrInvalid)) && (h.harmed[id] || id == "" && len(h.harmed) > 0)
}

func (w *world) edits(p *sim.Proc) {
	e := &editor{h: w.h, fsys: p.FS, rng: rand.New(rand.NewPCG(w.rng.Uint64(), 2)), sleep: p.Sleep, byRename: w.cuts}
	for w.acts > 0 {
		p.Sleep(time.Duration(e.rng.IntN(4000)) * time.Microsecond)
		if err := e.step(); err != nil {
			w.h.bad("editor: %v", err)
		}
	}
}
