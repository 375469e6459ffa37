package vectors

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/vfs"
)

// Computed is the file vector_index/reembed: the vectors that a re-embedding has computed so far. A
// re-embedding that was interrupted resumes with them. Records, little-endian:
//
//	 0  uint32  bytes of the payload
//	 4  uint64  its xxhash64
//	12  the payload
//
// The first payload is {"format":2,"model":"…","after":…}. after is the log position of the entry that had set
// the store's model when the re-embedding began (package internal/state). Each other payload begins with a
// type byte:
//
//	'v'  a vector     uint16 bytes of the id, the id, uint64 version that the vector was
//	                  computed for, 32 bytes sha256 of that version's content, float32 each
//	'e'  the end: all memories were processed
//
// The vectors are in the order in which memories are listed; after the end follow those of memories that
// changed since. If a memory has several records, the last one counts. Bytes after the last complete record
// are cut off.
type Computed struct {
	F      vfs.File
	size   int64
	Last   string // id of the last vector, in the order of listings
	Count  int64
	Dim    int
	Ended  bool
	failed error // the error of a failed append, after which the contents of the file are unknown
}

// ComputedVector is one record of the file vector_index/reembed: the vector that was computed for one content of a
// memory.
type ComputedVector struct {
	ID      string
	Version uint64
	Sum     [32]byte // hash of the content
	Vector  []float32
}

const (
	VectorFolder  = "vector_index"
	ComputedName  = "reembed"
	ComputedLock  = "reembed.lock"
	ComputedHead  = 12
	computedLimit = 16 << 20 // maximum number of bytes of a record
)

var ErrComputed = errors.New("not a valid record of computed vectors")

// ComputedPath returns the path of a file in the folder vector_index/.
func (vs *Vectors) ComputedPath(name string) string {
	return filepath.Join(vs.engine.Env().Dir, VectorFolder, name)
}

// OpenComputed opens the file of computed vectors for a re-embedding by model. It creates a missing file. It starts
// the file again without vectors if restart is set, or if the file does not belong to this re-embedding.
func (vs *Vectors) OpenComputed(model string, restart bool) (*Computed, error) {
	by := vs.Model()
	path := vs.ComputedPath(ComputedName)
	f, err := vs.engine.Env().FS.OpenFile(path, os.O_RDWR|os.O_CREATE, vs.engine.Env().FileMode)
	if err != nil {
		return nil, vs.engine.Env().IOError("opening", path, err)
	}
	c := &Computed{F: f}
	if !restart {
		err = c.load(model, &by)
	}
	if err == nil && c.size == 0 {
		var head []byte
		if head, err = json.Marshal(ComputedHeader{computedFormat, model, by.LSN}); err == nil {
			err = c.Append([][]byte{head})
		}
		if err == nil {
			err = vs.engine.Env().FS.SyncDir(filepath.Dir(path))
		}
	}
	if err != nil {
		return nil, errors.Join(vs.engine.Env().IOError("reading", path, err), f.Close())
	}
	return c, nil
}

// ComputedHeader is the payload of the first record in the file of computed vectors.
type ComputedHeader struct {
	Format int    `json:"format"`
	Model  string `json:"model"`
	After  uint64 `json:"after"`
}

const computedFormat = 2

// serves reports whether a re-embedding to a model can continue the file. The file must have been begun for that
// model. current is the store's current model: if a switch to the model has already taken over the vectors of the
// file and has ended, the file cannot be continued.
func (h *ComputedHeader) serves(model string, current *index.Model) bool {
	return h.Format == computedFormat && h.Model == model && (current.Switching() || h.After >= current.Since)
}

// load reads the file of computed vectors for a re-embedding to model. current is the store's current model. If
// the file has no record that this re-embedding can use, load leaves size at 0.
func (c *Computed) load(model string, current *index.Model) error {
	var head ComputedHeader
	var v ComputedVector
	first := true
	size, err := c.Records(math.MaxInt64, func(payload []byte) error {
		switch {
		case first:
			first = false
			if json.Unmarshal(payload, &head) != nil || !head.serves(model, current) {
				return ErrComputed
			}
		case len(payload) == 1 && payload[0] == 'e':
			c.Ended = true
		default:
			if err := v.Parse(payload); err != nil {
				return err
			}
			c.took(&v)
		}
		return nil
	})
	if errors.Is(err, ErrComputed) {
		err = nil
	}
	c.size = size
	return err
}

func (c *Computed) took(v *ComputedVector) {
	if !c.Ended {
		c.Last = v.ID
	}
	c.Dim = len(v.Vector)
	c.Count++
}

// Records calls f for the payload of each record in the first size bytes of the file. It stops without an error at a
// record that is incomplete or damaged, and with the error of f. It returns the offset of the end of the last record
// for which f returned nil.
func (c *Computed) Records(size int64, f func(payload []byte) error) (int64, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(c.F, 0, size), 1<<20)
	var at int64
	var head [ComputedHead]byte
	var payload []byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return at, atEnd(err)
		}
		n := binary.LittleEndian.Uint32(head[:])
		if n == 0 || n > computedLimit {
			return at, nil
		}
		if cap(payload) < int(n) {
			payload = make([]byte, n)
		}
		payload = payload[:n]
		if _, err := io.ReadFull(r, payload); err != nil {
			return at, atEnd(err)
		}
		if xxhash.Sum64(payload) != binary.LittleEndian.Uint64(head[4:]) {
			return at, nil
		}
		if err := f(payload); err != nil {
			return at, err
		}
		at += ComputedHead + int64(n)
	}
}

func atEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// Append appends records to the file, durably.
func (c *Computed) Append(payloads [][]byte) error {
	if c.failed != nil {
		return c.failed
	}
	var b []byte
	for _, p := range payloads {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(p))
		b = append(b, p...)
	}
	err := c.F.Truncate(c.size) // removes a torn record, or the records of another model
	if err == nil {
		_, err = c.F.WriteAt(b, c.size)
	}
	if err == nil {
		err = c.F.Sync()
	}
	if c.failed = err; err == nil {
		c.size += int64(len(b))
	}
	return err
}

// Add appends computed vectors to the file, durably.
func (c *Computed) Add(list []ComputedVector) error {
	payloads := make([][]byte, len(list))
	for i, v := range list {
		p := append([]byte{'v'}, byte(len(v.ID)), byte(len(v.ID)>>8))
		p = binary.LittleEndian.AppendUint64(append(p, v.ID...), v.Version)
		p = append(p, v.Sum[:]...)
		for _, x := range v.Vector {
			p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
		}
		payloads[i] = p
	}
	if err := c.Append(payloads); err != nil {
		return err
	}
	for i := range list {
		c.took(&list[i])
	}
	return nil
}

// End appends the record which marks that all vectors are computed.
func (c *Computed) End() error {
	if c.Ended {
		return nil
	}
	c.Ended = true
	return c.Append([][]byte{{'e'}})
}

// Parse decodes the payload of a record with a vector.
func (v *ComputedVector) Parse(p []byte) error {
	if len(p) < 3 || p[0] != 'v' {
		return ErrComputed
	}
	n := int(p[1]) | int(p[2])<<8
	if p = p[3:]; len(p) < n+8+sha256.Size || (len(p)-n-8-sha256.Size)%4 != 0 {
		return ErrComputed
	}
	v.ID = string(p[:n])
	p = p[n:]
	v.Version = binary.LittleEndian.Uint64(p)
	copy(v.Sum[:], p[8:])
	p = p[8+sha256.Size:]
	v.Vector = make([]float32, len(p)/4)
	for i := range v.Vector {
		v.Vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
	return nil
}

// All calls f for all vectors in the file, in batches of at most limit vectors. If another process has changed the
// file, the error is errs.ErrConflict.
func (c *Computed) All(limit int, f func(list []ComputedVector) error) error {
	var list []ComputedVector
	var n int64
	first := true
	size, err := c.Records(c.size, func(payload []byte) error {
		if first || payload[0] == 'e' {
			first = false
			return nil
		}
		var v ComputedVector
		if err := v.Parse(payload); err != nil {
			return err
		}
		n++
		if list = append(list, v); len(list) < limit {
			return nil
		}
		err := f(list)
		list = list[:0]
		return err
	})
	if err == nil && len(list) > 0 {
		err = f(list)
	}
	if err == nil && (size != c.size || n != c.Count) {
		err = fmt.Errorf("%w: another process changed vector_index/reembed: run memctl reindex again", errs.ErrConflict)
	}
	return err
}

// DropComputed overwrites and removes the file of computed vectors, which contains ids and data derived from
// contents. It also removes an older file that an interrupted purge has replaced but not removed.
func (vs *Vectors) DropComputed() error {
	var unwiped []error // errors that are not reported: the caller did not ask to wipe
	return vs.WipeComputed(&unwiped)
}

// WipeComputed overwrites and removes the files of computed vectors. Errors about files that cannot be
// overwritten are added to unwiped.
func (vs *Vectors) WipeComputed(unwiped *[]error) error {
	dropped := false
	for _, name := range []string{ComputedOld, ComputedName} {
		path := vs.ComputedPath(name)
		if _, err := vs.engine.Env().FS.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return vs.engine.Env().IOError("looking at", path, err)
		}
		if err := vfs.Unwiped(unwiped, vfs.Wipe(vs.engine.Env().FS, path)); err != nil {
			return vs.engine.Env().IOError("removing", path, err)
		}
		dropped = true
	}
	if !dropped {
		return nil
	}
	return vs.engine.Env().FS.SyncDir(filepath.Join(vs.engine.Env().Dir, VectorFolder))
}

// Under reports whether a file with this header can belong to a re-embedding that was in progress while the store's
// model was model. The log alone does not show this: it has no entry that announces a re-embedding which keeps the
// store's model.
func (h *ComputedHeader) Under(model *index.Model) bool {
	switch {
	case h.Format != computedFormat, h.After > model.LSN:
		return false
	case model.Switching():
		return h.Model == model.Name && h.After < model.Since
	}
	return (h.Model == model.Next || h.Model == model.Name) && h.After >= model.Since
}

// ComputedOld is the name that the file of computed vectors has while it is overwritten.
const ComputedOld = "reembed.old"
