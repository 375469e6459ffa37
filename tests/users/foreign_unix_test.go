//go:build unix

package users

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mallory makes folders for others, which the group of all users could read.
const mallory = carol

// TestForeignFolder (FAILURES 170): in a folder that another user has made, and opened to a group, no
// store and no copy of one becomes readable to the other user: an existing folder is refused by name,
// whether it is empty or begun, and a new folder in that of another user gets neither its group nor its
// mode, nor its owner.
func TestForeignFolder(t *testing.T) {
	p := gather(t)
	store := p.folder("store", alice, alice, 0o700)
	p.run(alice, "put:a:secret", store)
	roots := p.folder("roots", 0, 0, 0o700)
	p.run(0, "put:a:secret", roots)
	for _, name := range []string{"backup", "roots-backup"} {
		uid, from := alice, store
		if name == "roots-backup" {
			uid, from = 0, roots
		}
		p.run(uid, "backupto:"+filepath.Join(p.base, fmt.Sprint("home-", uid), name), from)
	}
	n := 0
	// trap is a folder that mallory has made, as if in /tmp.
	trap := func(kind string) string {
		n++
		dir := p.folder(fmt.Sprint("trap-", n), mallory, agents, 0o2777)
		switch kind {
		case "begun":
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "memories"), 0o777), os.Chown(filepath.Join(dir, "memories"), mallory, agents)); err != nil {
				t.Fatal(err)
			}
		case "documents":
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "memories"), 0o777), os.Chown(filepath.Join(dir, "memories"), mallory, agents), os.WriteFile(filepath.Join(dir, "memories", "a.json"), []byte(`{"id":"a"}`), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for _, uid := range []int{alice, 0} {
		from, home := store, filepath.Join(p.base, fmt.Sprint("home-", alice), "backup")
		if uid == 0 {
			from, home = roots, filepath.Join(p.base, "home-0", "roots-backup")
		}
		jobs := map[string]func(dir string) (string, error){
			"open":    func(dir string) (string, error) { return p.try(uid, "put:a:secret", dir) },
			"share":   func(dir string) (string, error) { return p.try(uid, "share", dir) },
			"backup":  func(dir string) (string, error) { return p.try(uid, "backupto:"+dir, from) },
			"restore": func(dir string) (string, error) { return p.try(uid, "restore:"+dir, home) },
			"migrate": func(dir string) (string, error) { return p.try(uid, "migrate:"+dir, from) },
		}
		for job, do := range jobs {
			for _, kind := range []string{"empty", "begun", "documents"} {
				if kind != "empty" && job != "open" {
					continue // not empty: refused as before
				}
				dir := trap(kind)
				out, err := do(dir)
				if err == nil || !strings.Contains(out, dir+" belongs to another user") || !strings.Contains(out, "name a folder of your own") {
					t.Errorf("user %d: %s in a folder of another user, %s: %v: %s", uid, job, kind, err, out)
				}
				p.hides(dir, uid)
			}
			// A new folder in one of hers.
			dir := filepath.Join(trap("empty"), "new")
			out, err := do(dir)
			if err != nil {
				t.Errorf("user %d: %s below a folder of another user: %v: %s", uid, job, err, out)
			}
			if job == "share" {
				continue
			}
			p.hides(filepath.Dir(dir), uid)
		}
	}
}

// hides fails the test if anything of a user in a folder is readable for others.
func (p *people) hides(dir string, uid int) {
	p.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		b, _ := os.ReadFile(path)
		if info.Mode().IsRegular() && strings.Contains(string(b), "secret") && (int(st.Uid) != uid || info.Mode().Perm()&0o077 != 0) {
			p.t.Errorf("%s: mode %s, owner %d", path, info.Mode(), st.Uid)
		}
		if d.IsDir() && int(st.Uid) == uid && info.Mode().Perm()&0o077 != 0 {
			p.t.Errorf("%s: mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
}

// TestOwnFolder: in a user's own folder a store and its copies get the mode and group of the folder, and
// copies within a store that is shared belong to its group. Root's folder for a group is used like one
// if that is requested.
func TestOwnFolder(t *testing.T) {
	p := gather(t)
	own := p.folder("own", alice, agents, 0o2770)
	for _, id := range []string{"a", "b", "c"} {
		p.run(alice, "put:"+id+":first", own)
	}
	p.groups(own, map[string]bool{})
	p.run(bob, "put:a:second", own) // shared already: also for the other members
	p.run(bob, "backup:two", own)
	p.groups(own, map[string]bool{})
	if got := p.run(alice, "get:a", own); got != "second" {
		t.Error(got)
	}
	copies := p.folder("copies", alice, agents, 0o2770)
	p.run(alice, "backupto:"+filepath.Join(copies, "b"), own)
	p.run(bob, "restore:"+filepath.Join(copies, "r"), filepath.Join(copies, "b")) // of the same group: open to it as before
	p.groups(filepath.Join(copies, "b"), map[string]bool{})
	p.groups(filepath.Join(copies, "r"), map[string]bool{})

	prepared := p.folder("prepared", 0, agents, 0o2770)
	if out, err := p.try(alice, "put:a:first", prepared); err == nil || !strings.Contains(out, "is open to group 61000") || !strings.Contains(out, "--shared=group") {
		t.Errorf("%v: %s", err, out)
	}
	p.run(alice, "share", prepared)
	p.run(bob, "put:a:second", prepared)

	// Sudo: folders of alice count as root's own, too, and stay hers.
	hers := p.folder("hers", alice, alice, 0o700)
	cmd := p.start(0, "put:a:by sudo", hers)
	cmd.Env = append(cmd.Env, fmt.Sprint("SUDO_UID=", alice))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got := p.run(alice, "get:a", hers); got != "by sudo" {
		t.Error(got)
	}
}
