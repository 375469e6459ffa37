package env

import (
	"io/fs"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// TestRefuses: what a mode or an owner keeps a user from, and the command that changes it.
// The system's own refusals are in the root's TestRefusal.
func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name     string
		dir, at  string
		info     vfs.Info
		why, fix string
	}{
		{"a file of somebody else", "/p/store", "/p/store/wal/open.lock", vfs.Info{Mode: 0o600, UID: 1001},
			"belongs to another user", "sudo chown -R 1000 /p/store, or run the command as the owner: sudo -u '#1001' …"},
		{"a folder of one's own without w", "/p/a store", "/p/a store", vfs.Info{Mode: fs.ModeDir | 0o500, UID: 1000},
			"does not let its owner write", "chmod -R u+rwX '/p/a store'"},
		{"the folder that the store is to be made in lets everybody pass, and only its owner write", "/p/store", "/p", vfs.Info{Mode: fs.ModeDir | 0o755},
			"does not let you write", "name a folder of your own, or sudo install -d -o 1000 -m 700 /p/store"},
		{"the folder that the store lies in lets nobody pass", "/p/store", "/p", vfs.Info{Mode: fs.ModeDir | 0o750, UID: 7},
			"does not let you in", "sudo chmod o+x /p, or run the command as the owner: sudo -u '#7' …"},
		{"nothing is in the way", "/p/store", "/p/store", vfs.Info{Mode: fs.ModeDir | 0o700, UID: 1000}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			why, fix := refuses(c.dir, c.at, &c.info, 1000, vfs.Flags{})
			if why != c.why || fix != c.fix {
				t.Errorf("%q, %q; want %q, %q", why, fix, c.why, c.fix)
			}
		})
	}
	for _, c := range []struct {
		flags    vfs.Flags
		why, fix string
	}{
		{vfs.Flags{Immutable: true}, "is immutable", "nouchg"},
		{vfs.Flags{AppendOnly: true}, "may only be appended to", "chattr -a /p/store"},
	} {
		why, fix := refuses("/p/store", "/p/store", &vfs.Info{Mode: fs.ModeDir | 0o700, UID: 1000}, 1000, c.flags)
		if why != c.why || fix == "" {
			t.Errorf("%q, %q; want %q", why, fix, c.why)
		}
	}
}
