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

const blockSize = 1 << 20 // number of bytes covered by one hash

var (
	// errPair means that the FAISS file does not belong to mapping.json or mapping.delta.json: either a writer has so
	// far renamed only one of the two files, or the FAISS file is damaged.
	errPair  = errors.New("the FAISS file does not belong to the mapping file")
	errBlock = errors.New("checksum mismatch in a block")
)

// file is a memory-mapped FAISS file. Each block is verified when it is read for the first time.
type file struct {
	shape
	name    string
	mapping vfs.Mapping
	data    []byte
	hashes  string          // hashes of the blocks, in hex
	seen    []atomic.Uint64 // one bit per block that was verified
}

// openFile maps the FAISS file called name into memory. f describes the FAISS file that belongs to the mapping
// (mapping.json or mapping.delta.json, see the package comment). If the opened file does not match f, the error matches
// errPair.
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

// belongs returns an error that matches errPair if the FAISS file is not the one that want describes.
func (f *file) belongs(info vfs.Info, want faissFile) error {
	if int64(len(f.data)) != want.Size || want.Size != f.size() {
		return f.damaged(-1, fmt.Errorf("%w: the file has %d bytes, but the mapping requires %d",
			errPair, len(f.data), want.Size))
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

// touch verifies the blocks that contain the bytes [from, to). It skips blocks that were verified since the file was
// opened. Call touch only in a function that guard runs.
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

// verify verifies block b of the FAISS file against its hash.
func (f *file) verify(b int) error {
	lo := b * blockSize
	want, err := strconv.ParseUint(f.hashes[16*b:16*(b+1)], 16, 64)
	if err != nil || xxhash.Sum64(f.data[lo:min(lo+blockSize, len(f.data))]) != want {
		return f.damaged(int64(lo), errBlock)
	}
	return nil
}

// bytes returns the bytes of the rows [from, to). The caller must call touchRows for these rows first, and read
// the bytes only in a function that guard runs.
func (f *file) bytes(from, to int64) []byte {
	return f.data[headSize+from*f.rowSize() : headSize+to*f.rowSize()]
}

// touchRows verifies the blocks that contain the rows [from, to), as touch does.
func (f *file) touchRows(from, to int64) error {
	return f.touch(headSize+from*f.rowSize(), headSize+to*f.rowSize())
}

// row appends the bytes of row i to dst.
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

// id returns the FAISS id of row i.
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

// guard calls read, which reads the mapped file. If the access causes a memory fault, guard returns it as an error.
func (f *file) guard(read func() error) error { return vfs.GuardFile(f.name, read) }
