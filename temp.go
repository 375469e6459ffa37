package varve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
)

// emptyTemp removes what killed processes left in tmp/. What is neither a temp
// file of ours nor a version that we know is somebody's work, and goes to
// quarantine.
func (st *Store) emptyTemp(ctx context.Context) error {
	edits, err := st.flusher.files.EmptyTemp(st.surplus(ctx))
	st.edited(ctx, edits)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// surplus says of a file in tmp/ that nobody's work is lost with it.
func (st *Store) surplus(ctx context.Context) func(path string, info vfs.Info, data func() ([]byte, error)) bool {
	return func(path string, info vfs.Info, data func() ([]byte, error)) bool {
		switch filepath.Dir(path) {
		case "tmp":
			if strings.HasPrefix(filepath.Base(path), "index.") {
				return true // a half-written index
			}
		case filepath.FromSlash(purgeFolder):
			return true // a backup of it
		}
		b, err := data()
		return err == nil && st.halfWritten(ctx, info, b)
	}
}

// halfWritten says whether a file is one of our documents, whole, or begun, or
// written over a longer one and not cut yet: what a flusher leaves that is
// killed at it. An edit is none of these.
func (st *Store) halfWritten(ctx context.Context, info vfs.Info, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	id, ok := leadingID(b)
	if !ok {
		return false
	}
	place, err := st.state.Find(record.Memory, id)
	if err != nil {
		// Deleted since: the chain from the deletion back knows its versions.
		pos, deleted, ok := st.state.Overlay().Get(record.Memory, id)
		if !ok || !deleted {
			return false
		}
		place.Version, place.InLog = pos, true
	}
	if st.ours(ctx, id, place.Version, info, func() ([]byte, error) { return b, nil }) {
		return true
	}
	for at := place.Version; at != 0 && place.InLog; {
		_, view, err := st.frame(ctx, record.Memory, id, at)
		if err != nil {
			return false
		}
		if doc, err := st.codec.Doc(&view, fileLimit); err == nil && len(doc) > 0 &&
			(bytes.HasPrefix(doc, b) || bytes.HasPrefix(b, doc)) {
			return true
		}
		at = view.Previous
	}
	return false
}

// leadingID is the id with which a document of ours begins.
func leadingID(b []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(b, []byte("{\n  \"id\": "))
	if !ok {
		return "", false
	}
	line, _, _ := bytes.Cut(rest, []byte(",\n"))
	var id string
	return id, json.Unmarshal(bytes.TrimSuffix(line, []byte("\n}\n")), &id) == nil
}
