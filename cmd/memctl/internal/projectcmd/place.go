package projectcmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
)

// Finder determines which repository or folder identifies a project. This repository or folder is the place of the
// project.
type Finder struct {
	own  func(path string) bool // reports whether the file at a path belongs to this user
	home string
}

// NewFinder returns the Finder of a user with the given environment and home folder.
func NewFinder(getenv func(string) string, home string) *Finder {
	users := vfs.Self(getenv)
	return &Finder{home: home, own: func(path string) bool {
		info, err := vfs.OS().Stat(path)
		if err != nil || len(users) == 0 {
			return err == nil
		}
		for _, u := range users {
			if int(info.UID) == u {
				return true
			}
		}
		return false
	}}
}

// mostGitFile is the maximum size in bytes of the files of git that are read.
const mostGitFile = 16 << 10

// Place returns the place of the project to which the folder dir belongs: the place of the repository that contains
// dir. Outside a repository, the place is dir itself if root is true and dir is neither the home folder nor the root
// of the file system. Otherwise Place returns "", which means no project. root is true if a client has offered dir as
// a root, or if a user has named dir or the project.
func (f *Finder) Place(dir string, root bool) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for at := dir; ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		if info, err := os.Lstat(git); err == nil && f.own(git) {
			if place, ok := f.repository(at, git, info); ok {
				return place, nil
			}
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	if !root || dir == f.home || filepath.Dir(dir) == dir {
		return "", nil
	}
	return dir, nil
}

// repository returns the place of the repository in folder. git is the path of the file or folder .git of the
// repository, and info describes it. The result is false if folder is not a repository.
func (f *Finder) repository(folder, git string, info os.FileInfo) (string, bool) {
	switch {
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(git, "HEAD")); err != nil {
			return "", false
		}
		return git, true
	case info.Mode().IsRegular():
		dir, ok := gitPath(git, "gitdir:", folder)
		if !ok {
			return "", false
		}
		if common, ok := worktree(git, dir); ok {
			return common, true
		}
		if submodule(folder, dir) {
			return dir, true
		}
	}
	return folder, true // a link, or a file that names a folder that does not name it: the folder itself
}

// worktree returns the common directory of a worktree. git is the path of its .git file, and dir is the folder that
// this file names. The bool is false if dir is not the folder of a worktree.
func worktree(git, dir string) (string, bool) {
	back, ok := gitPath(filepath.Join(dir, "gitdir"), "", dir)
	if !ok || !sameFile(back, git) {
		return "", false
	}
	common, ok := gitPath(filepath.Join(dir, "commondir"), "", dir)
	if !ok || !sameFile(filepath.Dir(dir), filepath.Join(common, "worktrees")) {
		return "", false
	}
	common, err := filepath.EvalSymlinks(common)
	return common, err == nil
}

// submodule reports whether the git configuration in the folder dir names folder as its worktree.
func submodule(folder, dir string) bool {
	text, ok := read(filepath.Join(dir, "config"))
	if !ok {
		return false
	}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "worktree") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if !filepath.IsAbs(value) {
			value = filepath.Join(dir, filepath.FromSlash(value))
		}
		return sameFile(value, folder)
	}
	return false
}

// gitPath returns the path that the git file name contains after prefix. A relative path is resolved in dir. The bool
// is false if the file cannot be read or does not have this form.
func gitPath(name, prefix, dir string) (string, bool) {
	text, ok := read(name)
	if !ok {
		return "", false
	}
	text, has := strings.CutPrefix(text, prefix)
	path := filepath.FromSlash(strings.TrimSpace(text))
	if !has || path == "" || strings.ContainsAny(path, "\x00\n") {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path), true
}

// read returns the content of a small regular file. The bool is false if the file cannot be read or is not a regular
// file.
func read(name string) (string, bool) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostGitFile {
		return "", false
	}
	b, err := os.ReadFile(name)
	return string(bytes.TrimPrefix(b, []byte("\ufeff"))), err == nil && len(b) <= mostGitFile
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
