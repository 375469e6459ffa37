//go:build linux || darwin

package hostile

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// kind is a kind of replacement. make puts it at path; the original was moved to moved, or does not
// exist (was is nil).
type kind struct {
	name   string
	fits   func(was fs.FileInfo) bool // nil: in the place of anything
	at     string                     // "": in every place
	nobody bool                       // the command runs as an unprivileged user
	stays  bool                       // make changes the thing where it is
	root   bool                       // only root can make it
	closed bool                       // the store says that it is in another place, and is not opened here
	large  bool                       // copying it takes longer than the bound
	make   func(b box, path, moved string, was fs.FileInfo) error
}

func isFile(was fs.FileInfo) bool   { return was != nil && was.Mode().IsRegular() }
func isFilled(was fs.FileInfo) bool { return isFile(was) && was.Size() > 0 }
func isThere(was fs.FileInfo) bool  { return was != nil }

// kinds returns all kinds.
func kinds() []kind { return append(anywhere(), forged()...) }

// anywhere returns the kinds that may be in every place.
func anywhere() []kind {
	return []kind{
		{name: "link-file-in", make: func(b box, path, _ string, _ fs.FileInfo) error {
			return relativeLink(b.path(storeDir, "memories/d.json"), path)
		}},
		{name: "link-file-out", make: func(b box, path, _ string, _ fs.FileInfo) error {
			return relativeLink(b.path(secretDir, "id_rsa"), path)
		}},
		{name: "link-dir-in", make: func(b box, path, _ string, _ fs.FileInfo) error {
			return os.Symlink(b.path(storeDir, "memories"), path)
		}},
		{name: "link-dir-out", make: func(b box, path, _ string, _ fs.FileInfo) error {
			return relativeLink(b.path(secretDir), path)
		}},
		{name: "link-moved-out", fits: isThere, make: func(b box, path, moved string, _ fs.FileInfo) error {
			to := b.path(targetDir, filepath.Base(path))
			if err := copyAny(moved, to); err != nil {
				return err
			}
			return os.Symlink(to, path)
		}},
		{name: "hard-link-out", make: func(b box, path, _ string, _ fs.FileInfo) error {
			return hardLink(b, path, []byte("what somebody else has\n"))
		}},
		{name: "hard-linked-out", fits: isFile, make: func(b box, path, moved string, _ fs.FileInfo) error {
			text, err := os.ReadFile(moved)
			if err != nil {
				return err
			}
			return hardLink(b, path, text)
		}},
		{name: "link-dangling", make: func(b box, path, _ string, _ fs.FileInfo) error {
			return os.Symlink(b.path(targetDir, "nothing"), path)
		}},
		{name: "link-self", make: func(_ box, path, _ string, _ fs.FileInfo) error {
			return os.Symlink(filepath.Base(path), path)
		}},
		{name: "fifo", make: func(_ box, path, _ string, _ fs.FileInfo) error { return unix.Mkfifo(path, 0o666) }},
		{name: "socket", make: func(_ box, path, _ string, _ fs.FileInfo) error { return socket(path) }},
		{name: "zero-device", root: true, make: func(_ box, path, _ string, _ fs.FileInfo) error {
			return device(path, unix.S_IFCHR, 1, 5)
		}},
		{name: "block-device", root: true, make: func(_ box, path, _ string, _ fs.FileInfo) error {
			return device(path, unix.S_IFBLK, 7, 250) // a loop device that is not there
		}},
		{name: "folder", make: func(_ box, path, _ string, _ fs.FileInfo) error { return os.Mkdir(path, 0o700) }},
		{name: "folder-full", make: func(_ box, path, _ string, _ fs.FileInfo) error { return fullFolder(path) }},
		{name: "sparse", make: func(_ box, path, _ string, _ fs.FileInfo) error { return sparse(path, 8<<40) }},
		{name: "sparse-4g", large: true, make: func(_ box, path, _ string, _ fs.FileInfo) error { return sparse(path, 4<<30) }},
		{name: "empty", make: func(_ box, path, _ string, _ fs.FileInfo) error { return os.WriteFile(path, nil, 0o600) }},
		{name: "gone", fits: isThere, make: func(box, string, string, fs.FileInfo) error { return nil }},
		{name: "mode-000", fits: isThere, nobody: true, stays: true, make: func(_ box, path, _ string, _ fs.FileInfo) error {
			return os.Chmod(path, 0)
		}},
		{name: "read-only", fits: isThere, nobody: true, stays: true, make: func(_ box, path, _ string, was fs.FileInfo) error {
			return os.Chmod(path, was.Mode().Perm()&0o555)
		}},
		{name: "garbage", fits: isFilled, make: func(_ box, path, _ string, was fs.FileInfo) error {
			r, text := rand.New(rand.NewPCG(3, uint64(was.Size()))), make([]byte, was.Size())
			for i := range text {
				text[i] = byte(r.Uint32())
			}
			return sameTime(path, text, was)
		}},
		{name: "truncated", fits: isFilled, make: func(_ box, path, moved string, was fs.FileInfo) error {
			text, err := os.ReadFile(moved)
			if err != nil {
				return err
			}
			return sameTime(path, text[:len(text)/2], was)
		}},
		{name: "nested", fits: isJSON, make: func(_ box, path, _ string, _ fs.FileInfo) error {
			return os.WriteFile(path, bytes.Repeat([]byte(`{"a":[`), 500_000), 0o600)
		}},
		{name: "long-line", fits: isFile, make: func(_ box, path, _ string, _ fs.FileInfo) error {
			return os.WriteFile(path, append([]byte(`{"varve":"`), bytes.Repeat([]byte("a"), 20<<20)...), 0o600)
		}},
	}
}

func isJSON(was fs.FileInfo) bool {
	return isFile(was) && (strings.HasSuffix(was.Name(), ".json") || strings.HasSuffix(was.Name(), ".jsonl"))
}

// hardLink creates a file outside that has a second name at path.
func hardLink(b box, path string, text []byte) error {
	other := b.path(targetDir, "other-"+filepath.Base(path))
	if err := os.WriteFile(other, text, 0o600); err != nil {
		return err
	}
	return os.Link(other, path)
}

func relativeLink(to, path string) error {
	rel, err := filepath.Rel(filepath.Dir(path), to)
	if err != nil {
		return err
	}
	return os.Symlink(rel, path)
}

func copyAny(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return copyTree(from, to)
	}
	return copyFile(from, to, info)
}

// socket binds a socket by its short name: the path of a socket has at most 108 bytes.
func socket(path string) error {
	short, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(short)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short + "/s", Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		return err
	}
	return os.Rename(short+"/s", path)
}

func device(path string, kind uint32, major, minor uint32) error {
	if err := unix.Mknod(path, kind|0o666, int(unix.Mkdev(major, minor))); err != nil {
		return err
	}
	return os.Chmod(path, 0o666)
}

func fullFolder(path string) error {
	if err := os.MkdirAll(filepath.Join(path, "deeper/still"), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"a.json", "1", "deeper/still/2", "note.txt"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(`{"id":"of a folder","content":"x"}`), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func sparse(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// sameTime writes a text to the file at path, and gives the file the mode and the modification time in was.
func sameTime(path string, text []byte, was fs.FileInfo) error {
	if err := os.WriteFile(path, text, was.Mode().Perm()); err != nil {
		return err
	}
	return os.Chtimes(path, was.ModTime(), was.ModTime())
}
