package varve

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

// computedIndex finds records of vector_index/reembed by their ids, while a switch
// lasts: 16 bytes of heap for each.
type computedIndex struct {
	mu    sync.Mutex
	since uint64 // of the switch that the rest is for
	f     vfs.File
	at    []computedAt // by hash, then place
}

type computedAt struct {
	hash  uint64
	place int64
}

func (x *computedIndex) close() error {
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

// computed is what was computed for a memory for the model that the store has
// changed to. errBehind: it is gone, since nobody needs it any more.
func (vs *vectors) computed(ctx context.Context, model *index.Model, id string) (v computedVector, ok bool, err error) {
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
			if errors.Is(err, errComputed) {
				err = errors.Join(errBehind, x.drop())
			}
			return v, false, err
		}
		if c.id == id {
			v, ok = c, true // the last one counts
		}
	}
	return v, ok, nil
}

// computedFor is that of a memory with a content.
func (vs *vectors) computedFor(ctx context.Context, model *index.Model, id string, sum [32]byte) ([]float32, bool, error) {
	if !model.Switching() {
		return nil, false, nil
	}
	c, ok, err := vs.computed(ctx, model, id)
	if errors.Is(err, errBehind) {
		return nil, false, nil
	}
	if err != nil || !ok || c.sum != sum {
		return nil, false, err
	}
	return c.vector, true, nil
}

func (vs *vectors) openComputedIndex(ctx context.Context, model *index.Model) error {
	x := &vs.side
	if err := x.drop(); err != nil {
		return err
	}
	path := vs.computedPath(computedName)
	f, err := vs.engine.Env.FS.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err := vs.engine.Sight(ctx); err != nil {
			return err
		}
		if now := vs.vectorsBy(); now.Since != model.Since || now.Done {
			return errBehind
		}
		x.since = model.Since
		return nil
	}
	if err != nil {
		return vs.engine.Env.IOError("opening", path, err)
	}
	c := &computed{f: f}
	var place int64
	var head computedHeader
	var at []computedAt
	_, err = c.records(math.MaxInt64, func(p []byte) error {
		switch {
		case place == 0:
			if json.Unmarshal(p, &head) != nil || !head.serves(model.Name, model) || head.After >= model.Since {
				return errComputed
			}
		case len(p) > 3 && p[0] == 'v':
			n := int(binary.LittleEndian.Uint16(p[1:]))
			if len(p) < 3+n {
				return errComputed
			}
			at = append(at, computedAt{xxhash.Sum64(p[3 : 3+n]), place})
		}
		place += computedHead + int64(len(p))
		return nil
	})
	if errors.Is(err, errComputed) {
		err, at = nil, nil // of another run
	}
	if err != nil {
		return errors.Join(vs.engine.Env.IOError("reading", path, err), f.Close())
	}
	slices.SortFunc(at, func(a, b computedAt) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.place, b.place))
	})
	x.since, x.f, x.at = model.Since, f, at
	return nil
}

func (x *computedIndex) read(place int64) (v computedVector, err error) {
	var head [computedHead]byte
	if _, err := x.f.ReadAt(head[:], place); err != nil {
		return v, fmt.Errorf("%w: %w", errComputed, err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > computedLimit {
		return v, errComputed
	}
	p := make([]byte, n)
	if _, err := x.f.ReadAt(p, place+computedHead); err != nil {
		return v, fmt.Errorf("%w: %w", errComputed, err)
	}
	if xxhash.Sum64(p) != binary.LittleEndian.Uint64(head[4:]) {
		return v, errComputed
	}
	return v, v.parse(p)
}
