package repair

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/segment"
)

// keepOthers writes a segment or a torn tail again, with nothing of the memories, when it
// has sound entries of others; what it was is overwritten.
func (t *Traces) keepOthers(o Options, folder, name string) (bool, error) {
	path := filepath.Join(folder, name)
	b, err := vfs.ReadFile(o.FS, path, purgeMost)
	if err != nil {
		return false, err
	}
	g, at := t.Log, uint64(0)
	if start, _, err := segment.ParseStart(b); err == nil {
		g, at = start.Geometry, start.Geometry.Start(start.Number)
	} else if _, err := fmt.Sscanf(name, "torn-tail-%d.bin", &at); err != nil || g.Size == 0 {
		return false, nil
	}
	wanted := func(key string) bool { return key[0] == record.Memory && t.ids[key[1:]] }
	if g.EraseIn(b, at, wanted) == 0 || t.proof(b) {
		return false, nil
	}
	old, err := vfs.Doom(o.FS, path)
	if err != nil {
		return false, err
	}
	temp := filepath.Join(folder, name+".reduced"+doomedSuffix) // who finds it overwrites it
	if err := vfs.WriteDurable(o.FS, temp, path, b, o.fileMode()); err != nil {
		return false, errors.Join(err, old.Close())
	}
	_, err = old.Wipe()
	return true, err
}

// proof says that bytes are not only a mention.
func (t *Traces) proof(b []byte) bool {
	return has(b, t.members) || slices.ContainsFunc(t.names, func(n string) bool { return bytes.Contains(b, []byte("memories/"+n)) })
}
