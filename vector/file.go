package vector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
)

const blockSize = 1 << 20 // of one hash

var (
	// errPair: the file is not the one that the mapping names. Somebody is between
	// the two renames, or it is damage.
	errPair  = errors.New("not the file with which the mapping was written")
	errBlock = errors.New("the block does not match its checksum")
)

// file is a mapped FAISS file whose blocks are checked when they are first touched.
type file struct {
	shape
	name    string
	mapping vfs.Mapping
	data    []byte
	hashes  string          // hex
	seen    []atomic.Uint64 // one bit for each block that matched its hash
}

// openFile maps the file that a mapping names, under a name that it may have.
func openFile(fsys vfs.FS, dir, name string, want shape, f faissFile) (*file, error) {
	h, err := fsys.OpenFile(filepath.Join(dir, name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := h.Stat()
	var m vfs.Mapping
	if err == nil {
		m, err = h.Map()
	}
	if cerr := h.Close(); err == nil && cerr != nil {
		_ = m.Close()
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	o := &file{shape: want, name: name, mapping: m, data: m.Bytes(), hashes: f.Blocks,
		seen: make([]atomic.Uint64, (len(f.Blocks)/16+63)/64)}
	if err := o.belongs(info, f); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return o, nil
}

// belongs reports whether this is the file that was written with the mapping.
func (f *file) belongs(info vfs.Info, want faissFile) error {
	if int64(len(f.data)) != want.Size || want.Size != f.size() {
		return f.damaged(-1, fmt.Errorf("%w: %d bytes, the mapping says %d", errPair, len(f.data), want.Size))
	}
	if info.Mtime.Equal(time.UnixMicro(want.Mtime)) {
		return nil
	}
	err := f.guard(func() error {
		if err := f.touch(0, headSize); err != nil {
			return err
		}
		return f.touch(f.idsAt(), f.size())
	})
	if errors.Is(err, errBlock) {
		return fmt.Errorf("%w: %w", errPair, err)
	}
	return err
}

// touch makes sure that the bytes [from, to) are what was written, once for each
// block; to be called under guard.
func (f *file) touch(from, to int64) error {
	for b := int(from / blockSize); int64(b)*blockSize < to; b++ {
		bit := uint64(1) << (b & 63)
		if f.seen[b>>6].Load()&bit != 0 {
			continue
		}
		if err := f.verify(b); err != nil {
			return err
		}
		f.seen[b>>6].Or(bit)
	}
	return nil
}

// verify compares block b with its hash.
func (f *file) verify(b int) error {
	lo := b * blockSize
	want, err := strconv.ParseUint(f.hashes[16*b:16*(b+1)], 16, 64)
	if err != nil || xxhash.Sum64(f.data[lo:min(lo+blockSize, len(f.data))]) != want {
		return f.damaged(int64(lo), errBlock)
	}
	return nil
}

// bytes are the rows [from, to), to be used under guard and after touch.
func (f *file) bytes(from, to int64) []byte {
	return f.data[headSize+from*f.rowSize() : headSize+to*f.rowSize()]
}

// touchRows touches the rows [from, to).
func (f *file) touchRows(from, to int64) error {
	return f.touch(headSize+from*f.rowSize(), headSize+to*f.rowSize())
}

// row copies a row.
func (f *file) row(dst []byte, i int64) ([]byte, error) {
	err := f.guard(func() error {
		if err := f.touchRows(i, i+1); err != nil {
			return err
		}
		dst = append(dst, f.bytes(i, i+1)...)
		return nil
	})
	return dst, err
}

// id is the id of a row as the file has it.
func (f *file) id(i int64) (id int64, err error) {
	err = f.guard(func() error {
		at := f.idsAt() + idsHead + 8*i
		if err := f.touch(at, at+8); err != nil {
			return err
		}
		id = int64(binary.LittleEndian.Uint64(f.data[at:]))
		return nil
	})
	return id, err
}

func (f *file) damaged(off int64, err error) error {
	return &errs.CorruptionError{Path: f.name, Offset: off, Err: err}
}

// guard runs what reads the mapping, and turns a fault into an error.
func (f *file) guard(read func() error) error { return vfs.GuardFile(f.name, read) }
