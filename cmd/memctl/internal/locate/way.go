package locate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/internal/places"
)

// Way is one of the ways in which a command finds a store, such as the current folder or a default. Check is called for
// each way. TestWays in cmd/memctl tests all of them.
type Way int

// The ways in which a store is found. For Named, the user gave the path: for this command (--store, an
// argument) or for all of them (VARVE_STORE). In all other ways memctl found the path, and its files may belong
// to another user, or have come with a cloned project.
const (
	Named      Way = iota // the user named the store: it is used in any case
	Here                  // the store is the current folder or a folder above it
	Storage               // the store is the folder storage/ in the current folder or one above it
	BesideFile            // the store is beside the file that MEMORY_FILE_PATH names
	SourceFile            // the file that MEMORY_FILE_PATH names, which is imported
	DataFolder            // in the folder where the user's programs keep their data
)

// Check returns a *Passed with the reason why the store or file at a path must not be used. It returns nil if it may be
// used. The path need not exist.
func (u Users) Check(way Way, path string) *Passed {
	if way == Named {
		return nil
	}
	if way != SourceFile {
		if p := u.foreign(path); p != nil {
			return p
		}
	}
	to := ""
	switch way {
	case Storage:
		to = LeadsOut(filepath.Dir(path), filepath.Base(path))
	case BesideFile, SourceFile:
		to = strays(path)
	}
	if to != "" {
		return &Passed{Path: path, Link: to}
	}
	return nil
}

// Why returns the reason why the store is not used: a link that leads to it, or another owner.
func (p *Passed) Why() string {
	if p.Link != "" {
		return fmt.Sprintf("%s is a link to %s", p.Path, p.Link)
	}
	return fmt.Sprintf("%s belongs to user %d (another user)", p.Path, p.Owner)
}

// strays returns the target of a path if a link in the path leads away, otherwise "". A link leads away in two
// cases: the last element of the path is a link to a target outside its folder; or a link within the path leads
// to a folder outside the project that contains the link, where a project is a folder with .git.
func strays(path string) string {
	if to := LeadsOut(filepath.Dir(path), filepath.Base(path)); to != "" {
		return to
	}
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err != nil || info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		project := projectOf(filepath.Dir(dir))
		if project == "" {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil { // the target may be created later
			if real, err = os.Readlink(dir); err != nil {
				return dir
			}
			if !filepath.IsAbs(real) {
				real = filepath.Join(filepath.Dir(dir), real)
			}
		}
		if !places.Within(real, project) {
			return real + strings.TrimPrefix(path, dir)
		}
	}
	return ""
}

// projectOf returns the nearest folder with .git, from dir upwards, as a path without links.
func projectOf(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	for dir := real; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
