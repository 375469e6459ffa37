package vfs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func bootID() [2]uint64 {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return [2]uint64{}
	}
	return parseUUID(string(b))
}

func parseUUID(s string) (id [2]uint64) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(s), "-", ""))
	if err != nil || len(b) != 16 {
		return id
	}
	return [2]uint64{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func command(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		if pid == os.Getpid() {
			return ownCommand()
		}
		return ""
	}
	return strings.TrimSpace(string(b))
}

func pidNamespace() string {
	s, _ := os.Readlink("/proc/self/ns/pid") // "" without /proc
	return s
}

// birth returns a number that, together with the process id, identifies this process: it encodes the start time of the
// process and its PID namespace. It returns 0 if /proc is missing or belongs to another namespace.
func birth() uint64 {
	began, pid, _, ok := stat("self")
	space := pidNamespace()
	if !ok || pid != os.Getpid() || space == "" {
		return 0
	}
	clock, _ := os.Readlink("/proc/self/ns/time") // start times are relative to the time namespace
	return birthOf(space+clock, began)
}

// started returns when a process of this namespace began, in ticks since boot, and whether it is alive.
func started(pid int) (began uint64, life Life) {
	if err := unix.Kill(pid, 0); err == unix.ESRCH {
		return 0, Dead
	}
	began, _, state, ok := stat(strconv.Itoa(pid))
	if !ok {
		return 0, Unknown // ended since, or hidden from this process
	}
	if state == "Z" || state == "X" { // a zombie: ended, but not reaped
		if threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task"); err != nil || len(threads) > 1 {
			return 0, Unknown
		}
		return 0, Dead
	}
	return began, Alive
}

// stat parses /proc/<which>/stat: `pid (command) state …`; the start time is its 22nd field.
func stat(which string) (began uint64, pid int, state string, ok bool) {
	b, err := os.ReadFile("/proc/" + which + "/stat")
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if err != nil || open < 0 || end < open {
		return 0, 0, "", false
	}
	fields := strings.Fields(string(b[end+1:]))
	if len(fields) < 20 {
		return 0, 0, "", false
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(b[:open])))
	began, err2 := strconv.ParseUint(fields[19], 10, 64)
	return began, pid, fields[0], err == nil && err2 == nil
}
