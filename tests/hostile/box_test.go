//go:build linux || darwin

package hostile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// secret is in every file outside the store; it must not be anywhere else.
const secret = "CANARY-5f1b2e"

// The folders of a box. The commands run in sub, and find the store above it.
const (
	storeDir   = "project/storage"
	subDir     = "project/sub"
	backupDir  = "backup"      // a backup of the store
	packedFile = "packed"      // the same in one file
	begunDir   = "begun"       // a copy that migrate has begun
	inputDir   = "input"       // the inputs of commands
	outDir     = "out"         // the outputs of commands
	tempDir    = "temp"        // TMPDIR
	homeDir    = "home"        // HOME
	stateDir   = "state"       // XDG_STATE_HOME
	secretDir  = "secrets"     // what links to folders outside name
	otherDir   = "other-store" // somebody else's
	targetDir  = "elsewhere"   // what a replaced thing was moved to, and is linked from
)

// box is a copy of a template: the store and its surroundings.
type box struct{ dir string }

func (b box) path(elem ...string) string {
	return filepath.Join(append([]string{b.dir}, elem...)...)
}

// copyTree copies a folder with modes and times, and links as links.
func copyTree(from, to string) error {
	type folder struct {
		path string
		info fs.FileInfo
	}
	var folders []folder
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			folders = append(folders, folder{target, info})
			return os.Mkdir(target, 0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case info.Mode().IsRegular():
			return copyFile(path, target, info)
		}
		return fmt.Errorf("%s: cannot copy %s", path, info.Mode())
	})
	for i := len(folders) - 1; err == nil && i >= 0; i-- {
		f := folders[i]
		if err = os.Chmod(f.path, f.info.Mode().Perm()); err == nil {
			err = os.Chtimes(f.path, f.info.ModTime(), f.info.ModTime())
		}
	}
	return err
}

func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return err
}

// seen describes a file outside the store.
type seen struct {
	mode  fs.FileMode
	size  int64
	mtime time.Time
	ino   uint64
	sum   string
}

func (s seen) String() string {
	return fmt.Sprintf("%s %d bytes %s inode %d %.12s", s.mode, s.size, s.mtime.UTC().Format(time.RFC3339Nano), s.ino, s.sum)
}

// watch returns everything in the box except the folders in which a command may write.
func (b box) watch(skip []string) (map[string]seen, error) {
	all := map[string]seen{}
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(b.dir, path)
		for _, s := range skip {
			if rel == s {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := seen{mode: info.Mode(), size: info.Size(), mtime: info.ModTime(), ino: inode(info)}
		switch {
		case info.IsDir() && holds(rel, skip):
			s.mtime, s.size = time.Time{}, 0 // the names in it are compared one by one
		case info.Mode().IsRegular() && info.Size() < 1<<20:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s.sum = fmt.Sprintf("%x", sha256.Sum256(text))
		case info.Mode()&fs.ModeSymlink != 0:
			s.sum, _ = os.Readlink(path)
		}
		all[rel] = s
		return nil
	})
	return all, err
}

// holds reports whether a folder contains an entry that is skipped: its own time changes when that is
// replaced.
func holds(rel string, skip []string) bool {
	for _, s := range skip {
		if filepath.Dir(s) == rel {
			return true
		}
	}
	return false
}

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// changes returns the differences outside between two calls of watch.
func changes(before, after map[string]seen) []string {
	var all []string
	for path, was := range before {
		switch now, ok := after[path]; {
		case !ok:
			all = append(all, path+" is gone")
		case now != was:
			all = append(all, fmt.Sprintf("%s was %v and is %v", path, was, now))
		}
	}
	for path, now := range after {
		if _, ok := before[path]; !ok {
			all = append(all, fmt.Sprintf("%s is new: %v", path, now))
		}
	}
	return all
}

// leaks returns the files below dir that contain the secret.
func leaks(dir string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > 64<<20 {
			return err
		}
		is, err := mentions(path)
		if is {
			all = append(all, path)
		}
		return err
	})
	return all, err
}

// mentions reports whether a file contains the secret. It does not read the file as a whole: the memory
// of this process counts as that of its children until they have started.
func mentions(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	for kept := 0; ; {
		n, err := f.Read(b[kept:])
		if bytes.Contains(b[:kept+n], []byte(secret)) {
			return true, nil
		}
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return false, err
		}
		n += kept
		kept = copy(b, b[max(0, n-len(secret)):n])
	}
}
