package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
)

// usersAtOnce is how many ids replicas take in turn; there are never as many of them.
const usersAtOnce = 10_000

// usersGiven counts the users that replicas were given.
var usersGiven atomic.Int32

// hasUsers tells whether each replica runs as a user of its own: without rights on the machine or on other replicas.
func (b *processBackend) hasUsers() bool { return b.users > 0 && os.Geteuid() == 0 }

// giveTo makes a user the owner of a folder and of all in it.
func giveTo(id int, dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, id, id))
	})
}

// noNewPrivileges keeps what this thread starts from ever gaining rights, as by sudo.
func noNewPrivileges() error {
	const setNoNewPrivileges = 38
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivileges, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no new privileges: %w", errno)
	}
	return nil
}

// closedFolders are folders that only their owner may enter, such as root's home, each with those below it that replicas
// need.
type closedFolders map[string][]string

// closedAbove finds the closed folders on the ways to the folders that replicas need.
func closedAbove(needed []string) (closedFolders, error) {
	found := closedFolders{}
	for _, path := range needed {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		for at := "/"; ; {
			state, err := os.Stat(at)
			if err != nil {
				return nil, err
			}
			if state.Mode()&0o001 == 0 {
				if at == path {
					return nil, fmt.Errorf("%s is for its owner only (%s), and functions need it: chmod o+x %s", at, state.Mode(), at)
				}
				found[at] = append(found[at], path)
				break
			}
			if at == path {
				break
			}
			next, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, at), "/"), "/")
			at = filepath.Join(at, next)
		}
	}
	return found, nil
}

// open makes the needed folders reachable for what this thread starts: in its view of the files, a closed folder holds
// nothing else.
func (c closedFolders) open() error {
	if len(c) == 0 {
		return nil
	}
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a view of the files: %w", err)
	}
	// Like the working folder it is now this thread's own.
	syscall.Umask(0o022)
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("a view of the files: %w", err)
	}
	for closed, needed := range c {
		if err := replaceView(closed, needed); err != nil {
			return fmt.Errorf("a view of %s: %w", closed, err)
		}
	}
	return nil
}

func replaceView(closed string, needed []string) error {
	const openPath = 0x200000
	var folders []int
	defer func() {
		for _, folder := range folders {
			_ = syscall.Close(folder)
		}
	}()
	for _, path := range needed {
		folder, err := syscall.Open(path, openPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		folders = append(folders, folder)
	}
	if err := syscall.Mount("tmpfs", closed, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755,size=64k"); err != nil {
		return err
	}
	for n, path := range needed {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", folders[n]), path, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return err
		}
	}
	return nil
}
