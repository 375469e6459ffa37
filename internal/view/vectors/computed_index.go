package vectors

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/vfs"
)

// computedIndex finds the records of a memory in vector_index/reembed by the memory's id, while a re-embedding rewrites
// the documents after a switch of the model. It takes 16 bytes of heap per record.
type computedIndex struct {
	mu    sync.Mutex
	since uint64 // the switch (index.Model.Since) to which the other fields belong
	f     vfs.File
	at    []computedAt // the records, sorted by hash of the id, then by offset in the file
}

type computedAt struct {
	hash  uint64
	place int64
}

func (x *computedIndex) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.drop()
}

func (x *computedIndex) drop() error {
	f := x.f
	x.f, x.at, x.since = nil, nil, 0
	if f == nil {
		return nil
	}
	return f.Close()
}

// computed returns the vector of a memory by the model that the store has switched to, if the file of computed vectors
// has one. Otherwise it returns false. It returns ErrBehind if the file has been removed because the switch has ended.
func (vs *Vectors) computed(ctx context.Context, model *index.Model, id string) (v ComputedVector, ok bool, err error) {
	x := &vs.side
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.since != model.Since {
		if err := vs.openComputedIndex(ctx, model); err != nil {
			return v, false, err
		}
	}
	hash := xxhash.Sum64String(id)
	i, _ := slices.BinarySearchFunc(x.at, hash, func(a computedAt, h uint64) int { return cmp.Compare(a.hash, h) })
	for ; i < len(x.at) && x.at[i].hash == hash; i++ {
		c, err := x.read(x.at[i].place)
		if err != nil {
			if errors.Is(err, ErrComputed) {
				err = errors.Join(ErrBehind, x.drop())
			}
			return v, false, err
		}
		if c.ID == id {
			v, ok = c, true // the last record counts
		}
	}
	return v, ok, nil
}

// ComputedFor returns the vector of a memory by the model that the store has switched to, if one was computed from
// content whose hash is sum. The bool result reports whether there is such a vector.
func (vs *Vectors) ComputedFor(ctx context.Context, model *index.Model, id string,
	sum [32]byte) ([]float32, bool, error) {
	if !model.Switching() {
		return nil, false, nil
	}
	c, ok, err := vs.computed(ctx, model, id)
	if errors.Is(err, ErrBehind) {
		return nil, false, nil
	}
	if err != nil || !ok || c.Sum != sum {
		return nil, false, err
	}
	return c.Vector, true, nil
}

func (vs *Vectors) openComputedIndex(ctx context.Context, model *index.Model) error {
	x := &vs.side
	if err := x.drop(); err != nil {
		return err
	}
	path := vs.ComputedPath(ComputedName)
	f, err := vs.engine.Env().FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err := vs.stillSwitching(ctx, model); err != nil {
			return err
		}
		x.since = model.Since
		return nil
	}
	if err != nil {
		return vs.engine.Env().IOError("opening", path, err)
	}
	c := &Computed{F: f}
	var place int64
	var head ComputedHeader
	var at []computedAt
	_, err = c.Records(math.MaxInt64, func(p []byte) error {
		switch {
		case place == 0:
			if json.Unmarshal(p, &head) != nil || !head.serves(model.Name, model) || head.After >= model.Since {
				return ErrComputed
			}
		case len(p) > 3 && p[0] == 'v':
			n := int(binary.LittleEndian.Uint16(p[1:]))
			if len(p) < 3+n {
				return ErrComputed
			}
			at = append(at, computedAt{xxhash.Sum64(p[3 : 3+n]), place})
		}
		place += ComputedHead + int64(len(p))
		return nil
	})
	if errors.Is(err, ErrComputed) {
		// The file belongs to another re-embedding, perhaps one that began after this switch ended. Then vectors
		// missing here are not missing in the store, and must not be recorded as missing.
		if err := vs.stillSwitching(ctx, model); err != nil {
			return errors.Join(err, f.Close())
		}
		err, at = nil, nil
	}
	if err != nil {
		return errors.Join(vs.engine.Env().IOError("reading", path, err), f.Close())
	}
	slices.SortFunc(at, func(a, b computedAt) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.place, b.place))
	})
	x.since, x.f, x.at = model.Since, f, at
	return nil
}

// stillSwitching returns ErrBehind if the switch to this model is no longer in progress.
func (vs *Vectors) stillSwitching(ctx context.Context, model *index.Model) error {
	if err := vs.engine.CatchUp(ctx); err != nil {
		return err
	}
	if now := vs.Model(); now.Since != model.Since || now.Done {
		return ErrBehind
	}
	return nil
}

func (x *computedIndex) read(place int64) (v ComputedVector, err error) {
	var head [ComputedHead]byte
	if _, err := x.f.ReadAt(head[:], place); err != nil {
		return v, fmt.Errorf("%w: %w", ErrComputed, err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > computedLimit {
		return v, ErrComputed
	}
	p := make([]byte, n)
	if _, err := x.f.ReadAt(p, place+ComputedHead); err != nil {
		return v, fmt.Errorf("%w: %w", ErrComputed, err)
	}
	if xxhash.Sum64(p) != binary.LittleEndian.Uint64(head[4:]) {
		return v, ErrComputed
	}
	return v, v.Parse(p)
}
