package servicecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/vfs"
)

const systemFolder = "/etc/systemd/system"

// Command returns memctl service, the group of commands that install and remove a systemd unit.
func Command(a *cli.App) *cobra.Command {
	return a.Group(&cobra.Command{
		Use:   "service",
		Short: "Have systemd adopt edits of the files",
		Long: `Install or remove a unit of systemd that runs memctl watch --adopt for the store, so that edits of the
files are adopted also while no program has the store open. Without --system it is a unit of the
user, which runs while the user is logged in, or always after loginctl enable-linger.`,
		Example: "  memctl service install\n  sudo memctl --store /srv/memory service install --system\n  memctl service " +
			"uninstall",
	}, installCommand(a), uninstallCommand(a))
}

// settings are the flags of install and uninstall.
type settings struct{ system, print, noStart bool }

// result is the JSON document of install and uninstall.
type result struct {
	Unit    string `json:"unit"`
	File    string `json:"file"`
	Store   string `json:"store"`
	System  bool   `json:"system"`
	Started *bool  `json:"started,omitempty"`
}

func installCommand(a *cli.App) *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "install",
		Short: "Install and start the service",
		Long: `Write a unit that contains the paths of the store and of this memctl, enable it and start it. A unit of
the system (--system) runs as the owner of the store, can write only to the store, and has no network. --print writes
the unit to stdout and changes nothing.`,
		Example: "  memctl service install\n  memctl service install --print\n  sudo memctl --store /srv/memory service " +
			"install --system",
		Args: cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			if s.print && a.Document != nil {
				return cli.Usagef(cmd.CommandPath(), "--print and --json cannot be combined")
			}
			return install(cmd.Context(), a, &s)
		}),
	}
	systemFlag(c, &s)
	c.Flags().BoolVar(&s.print, "print", false, "write the unit to stdout, and do nothing else")
	c.Flags().BoolVar(&s.noStart, "no-start", false, "write the unit without enabling and starting it")
	return c
}

func systemFlag(c *cobra.Command, s *settings) {
	c.Flags().BoolVar(&s.system, "system", false, "a unit of the system instead of the user; needs root")
}

func uninstallCommand(a *cli.App) *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:     "uninstall",
		Short:   "Stop and remove the service",
		Long:    "Stop and disable the service of the store, and remove its unit. The store is not changed.",
		Example: "  memctl service uninstall",
		Args:    cli.NoArguments,
		RunE:    a.Do(func(cmd *cobra.Command, _ []string) error { return uninstall(cmd.Context(), a, &s) }),
	}
	systemFlag(c, &s)
	return c
}

// storePath returns the path of the store, absolute and without links.
func storePath(a *cli.App) (string, error) {
	dir, err := a.Locate()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	dir = resolved(dir, mostLinks)
	if !printable(dir) {
		return "", fmt.Errorf("the path %q has control characters, which a unit of systemd cannot have: %w", dir,
			varve.ErrInvalid)
	}
	return dir, nil
}

// resolved returns dir as an absolute path without links, even if the targets of the links are missing. So the service
// of a deleted store has the same name as when the store existed. links is the maximum number of links that are
// followed.
func resolved(dir string, links int) string {
	whole, err := filepath.EvalSymlinks(dir)
	parent := filepath.Dir(dir)
	switch {
	case err == nil:
		return whole
	case parent == dir || !errors.Is(err, fs.ErrNotExist):
		return dir
	}
	dir = filepath.Join(resolved(parent, links), filepath.Base(dir))
	to, err := os.Readlink(dir)
	switch {
	case err != nil || links == 0:
		return dir
	case !filepath.IsAbs(to):
		to = filepath.Join(filepath.Dir(dir), to)
	}
	return resolved(filepath.Clean(to), links-1)
}

// mostLinks is the maximum number of links that are followed, the same as in Linux.
const mostLinks = 40

// fileOf returns the path of the file for the systemd unit with the given name.
func fileOf(a *cli.App, s *settings, name string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", cli.WithFix(fmt.Errorf("memctl service writes units of systemd, which %s does not have: %w", runtime.GOOS,
			varve.ErrInvalid),
			"use launchd or Task Scheduler to run memctl watch --adopt")
	}
	if s.system {
		return filepath.Join(systemFolder, name), nil
	}
	base := a.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) { // the specification ignores a relative path
		home := a.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", cli.WithFix(fmt.Errorf("a unit of the user needs a home folder, and this user has none: %w",
				varve.ErrInvalid), "set HOME or XDG_CONFIG_HOME, or use --system")
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "systemd", "user", name), nil
}

func install(ctx context.Context, a *cli.App, s *settings) error {
	store, err := storePath(a)
	if err != nil {
		return err
	}
	if !cli.IsStore(store) {
		return fmt.Errorf("%w in %s", varve.ErrNoStore, store)
	}
	name := nameOf(store)
	path, err := fileOf(a, s, name)
	if err != nil && !s.print {
		return err
	}
	u := unit{store: store, system: s.system}
	if u.memctl, err = os.Executable(); err != nil {
		return fmt.Errorf("finding the path of memctl: %w", err)
	}
	if !printable(u.memctl) || strings.ContainsAny(u.memctl, "$'\"\\") {
		return fmt.Errorf("systemd cannot run a program with the path %q: %w", u.memctl, varve.ErrInvalid)
	}
	if s.system {
		if u.owner, err = ownerOf(store); err != nil {
			return err
		}
	}
	if s.print {
		_, err := io.WriteString(a.Out.Data(cli.Text), u.file())
		return err
	}
	if err := checkOwnUnit(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := vfs.MkdirAll(vfs.OS(), filepath.Dir(path), 0o755); err != nil {
		return err
	}
	err = a.ReplaceFile(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, u.file())
		return err
	})
	if err != nil {
		return fmt.Errorf("writing the unit: %w", err)
	}
	started := false
	if !s.noStart {
		if err := systemctl(ctx, s, []string{"daemon-reload"}, []string{"enable", "--now", name}); err != nil {
			return cli.WithFix(fmt.Errorf("the unit %s was written and not started: %w", path, err),
				"when systemd can be reached, run: systemctl "+scope(s)+"daemon-reload && systemctl "+
					scope(s)+"enable --now "+
					cli.ShellQuote(name))
		}
		started = true
	}
	tell(a, result{name, path, store, s.system, &started}, one(started, "installed and started ", "wrote "))
	return nil
}

func uninstall(ctx context.Context, a *cli.App, s *settings) error {
	store, err := storePath(a)
	if err != nil {
		return err
	}
	name := nameOf(store)
	path, err := fileOf(a, s, name)
	if err != nil {
		return err
	}
	switch err := checkOwnUnit(path); {
	case errors.Is(err, fs.ErrNotExist):
		return cli.WithFix(fmt.Errorf("there is no service for the store %s: %s: %w", store, path, varve.ErrNotFound),
			"memctl service install installs one; add --system for a service of the system")
	case err != nil:
		return err
	}
	stopped := systemctl(ctx, s, []string{"disable", "--now", name})
	if stopped != nil && !unreachable(stopped) {
		return cli.WithFix(fmt.Errorf("the service was not stopped, and its unit %s is still there: %w", path, stopped),
			"systemctl "+scope(s)+"disable --now "+cli.ShellQuote(name)+", then memctl service uninstall again")
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	if stopped != nil {
		a.Note("the unit is removed; systemd cannot be reached and was not notified: %v", stopped)
	} else if err := systemctl(ctx, s, []string{"daemon-reload"}); err != nil {
		a.Note("the unit is removed, but systemd was not notified: %v", err)
	}
	tell(a, result{Unit: name, File: path, Store: store, System: s.system}, "removed ")
	return nil
}

// checkOwnUnit returns an error if the file at path is a unit that memctl did not write, or that was changed since
// memctl wrote it. It also returns an error if the file does not exist.
func checkOwnUnit(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	f, err := vfs.OpenGiven(path)
	if err != nil {
		return cli.WithFix(err, "move the file away")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return err
	}
	switch first, rest, _ := strings.Cut(string(text), "\n"); {
	case !strings.HasPrefix(first, mark):
		return cli.WithFix(fmt.Errorf("%s was not written by memctl service install: %w", path, varve.ErrInvalid),
			"move the file away")
	case first != firstLine(rest):
		return cli.WithFix(fmt.Errorf("%s was changed after memctl service install wrote it: %w", path, varve.ErrInvalid),
			"keep the changes in a drop-in (systemctl edit), then remove the file")
	}
	return nil
}

func tell(a *cli.App, r result, prefix string) {
	if a.Document != nil {
		a.Document.All(r)
		return
	}
	a.Say("%s%s", prefix, cli.Printable(r.File))
}
