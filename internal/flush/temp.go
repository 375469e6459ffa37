package flush

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/wal"
)

// EmptyTemp removes the files that killed processes left in tmp/. If a file is neither a temporary file of this program
// nor a known version of a document, it is the work of a user, and EmptyTemp moves it to quarantine.
func (fl *Flusher) EmptyTemp(ctx context.Context, _ *wal.Held) error {
	edits, err := fl.files.EmptyTemp(fl.Surplus(ctx))
	fl.Edited(ctx, edits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ClearTemp clears the path of a folder in tmp/, such as "tmp/parked": it moves anything that is at this path and is
// not a folder to quarantine. See package docfile.
func (fl *Flusher) ClearTemp(_ *wal.Held, folder string) error {
	edits, err := fl.files.ClearTemp(strings.TrimPrefix(folder, "tmp/"))
	fl.Edited(context.Background(), edits)
	return err
}

// sweepTemp removes the files in tmp/ of processes that were killed while other processes have the store open.
// Otherwise these files would stay until the log is recovered. sweepTemp does not touch files that may belong to a
// running process.
func (fl *Flusher) sweepTemp(ctx context.Context, held *wal.Held) error {
	dead := fl.engine.Log().Processes().Dead()
	if len(dead) == 0 {
		return nil
	}
	own := fl.engine.Env().FS.Host()
	edits, err := fl.files.SweepTemp(func(name string) bool { return leftByDead(own, name) }, fl.Surplus(ctx))
	fl.Edited(ctx, edits)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = fl.engine.Log().Processes().RemoveDead(held, dead)
	}
	return err
}

// leftByDead reports whether a name in tmp/ ends in the token of a process that is certainly dead; see Engine.Token.
func leftByDead(own vfs.Host, name string) bool {
	if places.IsIndexTemp(name) {
		_, name, _ = strings.Cut(name, ".")
	}
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	birth, err2 := strconv.ParseUint(parts[1], 16, 64)
	return err == nil && err2 == nil && vfs.LifeOf(own, pid, birth) == vfs.Dead
}

// Surplus returns a function that reports whether a file in tmp/ is not needed, because it contains no work of a user.
func (fl *Flusher) Surplus(ctx context.Context) func(path string, info vfs.Info, data func() ([]byte, error)) bool {
	return func(path string, info vfs.Info, data func() ([]byte, error)) bool {
		switch filepath.Dir(path) {
		case "tmp":
			if places.IsIndexTemp(filepath.Base(path)) {
				return true // an incomplete index
			}
		case filepath.FromSlash(PurgeFolder):
			return true // a backup of the index
		}
		b, err := data()
		return err == nil && fl.halfWritten(ctx, info, b)
	}
}

// places returns the folders that contain document files.
func (fl *Flusher) places() (list []*docfile.Folder) {
	for _, k := range fl.engine.Present() {
		list = append(list, k.Folder)
	}
	return append(list, fl.engine.Kinds().Scopes.Folder)
}

// inPlace reports whether a file in tmp/ is the same file as the one at the path of its document. info describes the
// file in tmp/, and data returns its content. If the power fails while two files exchange their names, one file may
// have both names afterwards.
func (fl *Flusher) inPlace(info vfs.Info, data func() ([]byte, error)) bool {
	b, err := data()
	if err != nil {
		return false
	}
	stands := func(k *engine.Kind, id string) bool {
		at, err := k.Stat(k.FileName(id))
		return err == nil && at.Ino == info.Ino && at.Dev == info.Dev
	}
	if key, ok := LeadingScope(b); ok {
		return stands(fl.engine.Kinds().Scopes, key)
	}
	if k, id := fl.leadingID(b); k != nil {
		return stands(k, id)
	}
	return fl.anyOpaque(context.Background(), stands)
}

// anyOpaque reports whether match returns true for any document of an opaque kind that changed since the index was
// written. The content of such a document does not include its id. So a file without an id that a killed flusher left
// in tmp/ may be any of these documents.
func (fl *Flusher) anyOpaque(ctx context.Context, match func(k *engine.Kind, id string) bool) bool {
	if !slices.ContainsFunc(fl.engine.Present(), func(k *engine.Kind) bool { return k.Opaque }) {
		return false
	}
	for _, at := range fl.engine.State().Changes(0, 1<<62) {
		e, err := fl.engine.Log().ReadAt(ctx, at.Pos)
		if err != nil {
			continue
		}
		if k := fl.engine.Kinds().Of(e.Key); k != nil && k.Opaque && match(k, strings.Clone(e.Key[1:])) {
			return true
		}
	}
	return false
}

// halfWritten reports whether a file in tmp/ is one that a killed flusher has left: a document of the store that is
// complete, incomplete, or written over a longer one and not truncated yet. It returns false for a file that a user has
// edited.
func (fl *Flusher) halfWritten(ctx context.Context, info vfs.Info, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if key, ok := LeadingScope(b); ok {
		return fl.host.OursScope(key, 0, func() ([]byte, error) { return b, nil })
	}
	if k, id := fl.leadingID(b); k != nil {
		return fl.halfWrittenOf(ctx, k, id, info, b)
	}
	return fl.anyOpaque(ctx, func(k *engine.Kind, id string) bool { return fl.halfWrittenOf(ctx, k, id, info, b) })
}

// halfWrittenOf reports the same as halfWritten, but only for the versions of one document.
func (fl *Flusher) halfWrittenOf(ctx context.Context, k *engine.Kind, id string, info vfs.Info, b []byte) bool {
	place, err := fl.engine.State().Find(k.Letter, id)
	if err != nil {
		// Deleted since: the chain from the deletion back has its versions.
		pos, deleted, ok := fl.engine.State().Overlay().Get(k.Letter, id)
		if !ok || !deleted {
			return false
		}
		place.Version, place.InLog = pos, true
	}
	if fl.Ours(ctx, k, id, place.Version, info, func() ([]byte, error) { return b, nil }) {
		return true
	}
	for at := place.Version; at != 0 && place.InLog; {
		_, view, err := fl.engine.Frame(ctx, k, id, at)
		if err != nil {
			return false
		}
		if doc, err := fl.engine.Codec().Doc(&view, places.StoredMost); err == nil && len(doc) > 0 &&
			(bytes.HasPrefix(doc, b) || !k.Opaque && bytes.HasPrefix(b, doc)) { // an append to opaque bytes is an edit
			return true
		}
		at = view.Previous
	}
	return false
}

// leadingID returns the kind and the id in the first member of b, if b begins like a JSON document of a kind. Otherwise
// the kind is nil.
func (fl *Flusher) leadingID(b []byte) (*engine.Kind, string) {
	for _, k := range fl.engine.Kinds().All {
		if k.Opaque {
			continue
		}
		rest, ok := bytes.CutPrefix(b, []byte("{\n  \""+k.IDName+"\": "))
		if !ok {
			continue
		}
		line, _, _ := bytes.Cut(rest, []byte(",\n"))
		var id string
		if json.Unmarshal(bytes.TrimSuffix(line, []byte("\n}\n")), &id) == nil {
			return k, id
		}
	}
	return nil, ""
}

// LeadingScope returns the key of the working-memory scope in the first member of b, if b begins like the document of a
// scope. Otherwise it returns false.
func LeadingScope(b []byte) (key string, ok bool) {
	rest, begins := bytes.CutPrefix(b, []byte("{\n  \"scope\": "))
	line, _, ends := bytes.Cut(rest, []byte(",\n"))
	ok = begins && ends && json.Unmarshal(line, &key) == nil
	return key, ok
}
