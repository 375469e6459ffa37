package migrate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	movedList       = places.MovedName + ".files"
	movedListFormat = 1
)

// movedListHead is the first line of moved.json.files.
type movedListHead struct {
	Format int       `json:"varve_moved_files"`
	ID     uuid.UUID `json:"id"`
}

// fileSum returns the digest with which the sum of a file is computed. It already includes the file's name and a NUL
// byte; the caller adds the file's bytes.
func fileSum(name string) *xxhash.Digest {
	d := xxhash.New()
	_, _ = d.WriteString(filepath.ToSlash(name) + "\x00")
	return d
}

// writeList writes the list of copied files in the old place. If the disk is full, the switch continues without a
// list: then fewer files can later be proven to be copied, and the unproven files stay.
func (m *migrate) writeList() error {
	b, err := json.Marshal(movedListHead{movedListFormat, m.state.ID})
	if err != nil {
		return err
	}
	b = append(b, '\n')
	for _, sum := range m.sums {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
	err = vfs.WriteDurable(m.fs, m.from(movedList+".new"), m.from(movedList), b, m.s.FileMode)
	if vfs.IsDiskFull(err) {
		return nil
	}
	return err
}

// readList returns the list of files that the migration with this id copied. It returns nil if that migration has left
// no list, or if the list is damaged.
func (m *migrate) readList(id uuid.UUID) (map[uint64]bool, error) {
	b, err := vfs.ReadFile(m.fs, m.from(movedList), places.ListMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	line, _, ok := bytes.Cut(b, []byte("\n"))
	var head movedListHead
	if !ok || json.Unmarshal(line, &head) != nil || head.Format != movedListFormat || head.ID != id {
		return nil, nil
	}
	sums, end := b[len(line)+1:], len(b)-8
	if len(sums) < 8 || len(sums)%8 != 0 || xxhash.Sum64(b[:end]) != binary.LittleEndian.Uint64(b[end:]) {
		return nil, nil
	}
	list := make(map[uint64]bool, len(sums)/8)
	for sums = sums[:len(sums)-8]; len(sums) > 0; sums = sums[8:] {
		list[binary.LittleEndian.Uint64(sums)] = true
	}
	return list, nil
}

// proven reports whether all bytes of a file in the old place were copied, or are in the new place now. Equal size and
// times prove nothing.
func (m *migrate) proven(name string, info vfs.Info) (bool, error) {
	if v, err := m.fs.Volume(m.s.To); err == nil && info.Size > v.Total && info.Size >= asksRoom {
		return false, nil // the file is larger than the new disk, so it was not copied; reading it would take hours
	}
	if m.list != nil {
		sum, err := m.sum(name, info.Size)
		if err != nil || m.list[sum] {
			return err == nil, err
		}
	}
	there, err := m.fs.Stat(m.to(name))
	if err != nil || !there.Mode.IsRegular() || there.Size != info.Size {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	_, same, err := m.equal(name)
	return same, err
}

func (m *migrate) sum(name string, size int64) (uint64, error) {
	f, err := m.fs.OpenFile(m.from(name), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	d := fileSum(name)
	_, err = io.CopyBuffer(d, io.NewSectionReader(f, 0, size), make([]byte, min(256<<10, size+1)))
	return d.Sum64(), err
}
