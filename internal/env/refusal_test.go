package env

import (
	"io/fs"
	"testing"

	"github.com/varve-db/varve/internal/vfs"
)

// TestRefuses: what a mode or an owner prevents a user from doing, and the command that changes it. The
// system's own refusals are in the root's TestRefusal.
func TestRefuses(t *testing.T) {
	own := vfs.Info{Mode: fs.ModeDir | 0o700, UID: 1000}
	shared := vfs.Info{Mode: fs.ModeDir | fs.ModeSetgid | 0o770, UID: 1001, GID: 7}
	for _, c := range []struct {
		name     string
		dir, at  string
		info     vfs.Info
		root     vfs.Info // the store's folder
		why, fix string
	}{
		{"a file of another user in one's own store", "/p/store", "/p/store/wal/open.lock", vfs.Info{Mode: 0o600, UID: 0}, own,
			"belongs to another user", "sudo chown -h 1000 /p/store/wal/open.lock"},
		{"a file in the store of another user", "/p/store", "/p/store/wal/open.lock", vfs.Info{Mode: 0o600, UID: 1001}, vfs.Info{Mode: fs.ModeDir | 0o700, UID: 1001},
			"belongs to another user", "run the command as the owner: sudo -u '#1001' …"},
		{"a file of another user in the store of a group", "/p/store", "/p/store/memories/a b.json", vfs.Info{Mode: 0o600, UID: 1001, GID: 7}, shared,
			"denies access to the group to which the store belongs",
			"ask the owner to run: chmod g+rw '/p/store/memories/a b.json'"},
		{"a folder of another user in the store of a group", "/p/store", "/p/store/tmp", vfs.Info{Mode: fs.ModeDir | 0o700, UID: 1001, GID: 7}, shared,
			"denies access to the group to which the store belongs", "ask the owner to run: chmod g+rwx /p/store/tmp"},
		{"a file of another group there", "/p/store", "/p/store/a", vfs.Info{Mode: 0o660, UID: 1001, GID: 4294967294}, shared,
			"belongs to group 4294967294, of which you are not a member",
			"have the administrator add you to the group, or run the command as the owner: sudo -u '#1001' …"},
		{"a file of one's own without w", "/p/store", "/p/store/a", vfs.Info{Mode: 0o400, UID: 1000}, own,
			"does not let its owner write", "chmod u+rw /p/store/a"},
		{"a folder of one's own without w", "/p/a store", "/p/a store", vfs.Info{Mode: fs.ModeDir | 0o500, UID: 1000}, own,
			"does not let its owner write", "chmod u+rwx '/p/a store'"},
		{"the folder that the store is to be made in lets everybody pass, and only its owner write", "/p/store", "/p", vfs.Info{Mode: fs.ModeDir | 0o755}, vfs.Info{},
			"does not let you write", "choose a folder of your own, or sudo install -d -o 1000 -m 700 /p/store"},
		{"the folder that the store lies in lets nobody pass", "/p/store", "/p", vfs.Info{Mode: fs.ModeDir | 0o750, UID: 7}, own,
			"does not let you enter", "run the command as the owner: sudo -u '#7' …"},
		{"the store is there: what it lies in need not be written", "/p/store", "/p", vfs.Info{Mode: fs.ModeDir | 0o755}, own, "", ""},
		{"nothing is in the way", "/p/store", "/p/store", own, own, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			why, fix := refuses(c.dir, c.at, &c.info, &c.root, 1000, vfs.Flags{})
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
		why, fix := refuses("/p/store", "/p/store", &own, &own, 1000, c.flags)
		if why != c.why || fix == "" {
			t.Errorf("%q, %q; want %q", why, fix, c.why)
		}
	}
}
