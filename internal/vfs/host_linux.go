package vfs

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
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
	s, _ := os.Readlink("/proc/self/ns/pid") // "" where there is no /proc
	return s
}
