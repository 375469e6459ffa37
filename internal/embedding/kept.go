package embedding

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

// Kept is the file by which the processes of one user inform each other that an embedding service is down. Without this
// file each process, even one that runs a single command, would have to call the service to notice that it is down. The
// file is outside of the store, because a copy of the store on another machine uses another service. The contents of
// the file are not trusted.
type Kept struct {
	FS     vfs.FS
	Dir    string // a folder of this user, outside of every store
	Name   string // name of the file, derived from the service and its model
	Random func([]byte) error
}

const (
	keptFolder = "embedders"
	mostKept   = 8 << 10
	mostError  = 2 << 10
	// keptFor is the maximum age of a record of failures that is used. Older failures do not count as being in a row
	// with current failures.
	keptFor = time.Hour
)

func (k *Kept) path() string {
	sum := sha256.Sum256([]byte(k.Name))
	return filepath.Join(k.Dir, keptFolder, fmt.Sprintf("%x.json", sum[:16]))
}

// load reads the record of failures from the file. It returns false if the record is old or invalid.
func (k *Kept) load(now time.Time) (standing, bool) {
	var s standing
	b, err := vfs.ReadFile(k.FS, k.path(), mostKept)
	if err != nil || json.Unmarshal(b, &s) != nil {
		return standing{}, false
	}
	age := now.Sub(s.Last)
	if s.Failures <= 0 || s.Wait < 0 || s.Wait > breakerLast || age > keptFor || age < -keptFor {
		return standing{}, false
	}
	return s, true
}

// save writes a record of failures to the file. It ignores errors: without the file, other processes notice the
// failures when they call the service.
func (k *Kept) save(s *standing) {
	c := *s
	if len(c.Error) > mostError {
		c.Error = strings.ToValidUTF8(c.Error[:mostError], "") + "…"
	}
	b, err := json.Marshal(&c)
	var salt [4]byte
	if err == nil {
		err = k.Random(salt[:])
	}
	if err != nil {
		return
	}
	path := k.path()
	if vfs.MkdirAll(k.FS, filepath.Dir(path), 0o700) != nil {
		return
	}
	temp := fmt.Sprintf("%s.%x.new", path, salt)
	f, err := k.FS.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_, err = f.WriteAt(b, 0)
	if err = errors.Join(err, f.Close()); err == nil {
		err = k.FS.Rename(temp, path)
	}
	if err != nil {
		_ = k.FS.Remove(temp)
	}
}

// drop removes the file with the record of failures. It ignores errors.
func (k *Kept) drop() { _ = k.FS.Remove(k.path()) }
