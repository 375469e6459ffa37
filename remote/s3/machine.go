package s3

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
)

const machineFolder = "machines/"

// Register records a machine; see remote.Remote.
func (r *Remote) Register(ctx context.Context, m remote.Machine) error {
	b, err := pack(magicMachine, m, nil)
	if err != nil {
		return err
	}
	_, err = r.put(ctx, machineFolder+m.ID.String(), b, always)
	return err
}

// Machines returns the recorded machines; see remote.Remote.
func (r *Remote) Machines(ctx context.Context) (all []remote.Machine, err error) {
	var bad error
	for o, err := range r.names(ctx, machineFolder) {
		var b []byte
		if err == nil {
			b, _, err = r.get(ctx, o.name, mostPacked)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var m remote.Machine
		if _, err = unpack(magicMachine, r.key(o.name), b, &m); err == nil && machineFolder+m.ID.String() != o.name {
			err = &errs.CorruptionError{Path: r.key(o.name), Offset: -1, Err: errForm}
		}
		if err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b remote.Machine) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all, bad
}
