package dir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
)

// mostMachine is the maximum size in bytes of the description of a machine.
const mostMachine = 64 << 10

// Register records a machine; see remote.Remote.
func (r *Remote) Register(_ context.Context, m remote.Machine) error {
	if err := r.checkIdentity(); err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	temp, err := r.temporary()
	if err != nil {
		return err
	}
	name := r.path("machines", m.ID.String()+".json")
	return vfs.Failed("writing", name, vfs.WriteDurable(r.o.FS, temp, name, append(b, '\n'), r.o.FileMode))
}

// Machines returns the recorded machines; see remote.Remote.
func (r *Remote) Machines(_ context.Context) (list []remote.Machine, err error) {
	if err := r.checkIdentity(); err != nil {
		return nil, err
	}
	names, err := r.o.FS.ReadDir(r.path("machines"))
	if err != nil {
		return nil, vfs.Failed("reading", r.path("machines"), err)
	}
	var bad error
	for _, name := range names {
		id, ok := strings.CutSuffix(name, ".json")
		if _, err := uuid.Parse(id); !ok || err != nil {
			continue
		}
		path := r.path("machines", name)
		b, err := vfs.ReadFile(r.o.FS, path, mostMachine)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, vfs.Failed("reading", path, err)
		}
		var m remote.Machine
		if err := json.Unmarshal(b, &m); err != nil || m.ID.String() != id {
			bad = errors.Join(bad, &errs.CorruptionError{Path: path, Offset: -1, Err: errors.Join(err, errContent)})
			continue
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b remote.Machine) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return list, bad
}
