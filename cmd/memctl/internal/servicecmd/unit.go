package servicecmd

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark begins the first line of a unit that memctl wrote; see firstLine.
const mark = "# Written by memctl service install; memctl service uninstall removes it."

// unit has the values that a systemd unit file is made from.
type unit struct {
	store  string // absolute path of the store, or a specifier of systemd that stands for it
	memctl string // absolute path of the program memctl
	system bool
	owner  string // number of a user and, after a colon, of a group; "" if none is set
}

// service has the directives of every unit. systemd restarts the service after a failure, but not after the listed
// exit statuses: if a store is damaged, missing, of a newer version or of another user, a restart half a minute later
// does not help.
const service = `
Restart=on-failure
RestartSec=30
RestartPreventExitStatus=2 3 10 12 14 64
MemoryMax=1G
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=none
RestrictRealtime=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
`

// confined has the directives that only a unit of the system has. They need namespaces that the systemd manager of a
// user cannot create.
const confined = `AmbientCapabilities=
CapabilityBoundingSet=
DevicePolicy=closed
IPAddressDeny=any
KeyringMode=private
PrivateDevices=yes
PrivateIPC=yes
PrivateNetwork=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RestrictNamespaces=yes
RestrictSUIDSGID=yes
`

// file returns the content of the unit.
func (u *unit) file() string {
	text := u.text()
	return firstLine(text) + "\n" + text
}

// firstLine returns the first line of a unit file. The line contains the hash of text, which follows the line; with
// this hash memctl detects that the file was changed.
func firstLine(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s (sha256:%x)", mark, sum[:8])
}

func (u *unit) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("[Unit]")
	line("Description=Memory store %s: adopt edits of its files", u.expanding(u.store))
	line("Documentation=man:memctl-watch(1)")
	line("\n[Service]")
	line("Type=exec")
	line(`ExecStart=%s --store %s watch --adopt`, u.quoted(u.memctl), strings.ReplaceAll(u.quoted(u.store), "$", "$$"))
	b.WriteString(service[1:])
	wanted := "default.target"
	if u.system {
		wanted = "multi-user.target"
		b.WriteString(confined)
		if user, group, ok := strings.Cut(u.owner, ":"); ok {
			line("User=%s\nGroup=%s", user, group)
		}
		line("ReadWritePaths=%s", u.quoted(u.store))
		// The store and memctl must stay visible, wherever they are.
		line("ProtectHome=%s", one(u.hasPathIn("/home", "/root", "/run/user"), "read-only", "yes"))
		line("PrivateTmp=%s", one(u.hasPathIn("/tmp", "/var/tmp"), "no", "yes"))
	}
	line("\n[Install]")
	line("WantedBy=%s", wanted)
	return b.String()
}

func one(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// hasPathIn reports whether the store or memctl is inside one of the folders.
func (u *unit) hasPathIn(folders ...string) bool {
	for _, f := range folders {
		if strings.HasPrefix(u.store+"/", f+"/") || strings.HasPrefix(u.memctl, f+"/") {
			return true
		}
	}
	return false
}

// expanding escapes the percent signs of a text, because systemd expands specifiers such as %h in it. If the text is
// the specifier %f alone, as for the store of a template unit, expanding returns it unchanged.
func (u *unit) expanding(s string) string {
	if s == "%f" {
		return s
	}
	return strings.ReplaceAll(s, "%", "%%")
}

// quoted returns a path as one word of a line in a unit file.
func (u *unit) quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(u.expanding(path)) + `"`
}

// printable reports whether a path may be part of a line in a unit file: it has no control characters.
func printable(path string) bool {
	return utf8.ValidString(path) && strings.IndexFunc(path, unicode.IsControl) < 0
}

// most is the maximum length of the escaped path in the name of a unit; systemd permits 255 bytes
// in all.
const most = 200

// nameOf returns the name of the unit for a store: the path is escaped as by systemd-escape --path,
// and replaced by its hash if it would be too long.
func nameOf(store string) string {
	var b strings.Builder
	for i, c := range []byte(strings.Trim(store, "/")) {
		switch {
		case c == '/':
			b.WriteByte('-')
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == ':' || c == '_' ||
			c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	name := b.String()
	if len(name) > most {
		name = fmt.Sprintf("%x", sha256.Sum256([]byte(store)))[:32]
	}
	return "memctl-watch-" + name + ".service"
}
