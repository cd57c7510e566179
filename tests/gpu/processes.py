"""Processes that end by a deadline, and whose output is kept as it comes."""

import os
import signal
import subprocess
import threading
import time

GRACE_SECONDS = 5  # from being told to end to being ended


class OutOfTime(Exception):
    """The deadline came before the work was done; `output` is what it printed until then."""

    def __init__(self, output=()):
        super().__init__("the deadline came")
        self.output = output


class Finished:
    """What a process printed, line by line, and how it ended; `why` says who ended it, and when."""

    def __init__(self):
        self.code, self.why, self.output, self.lines = None, "", [], []

    @property
    def good(self):
        return self.code == 0 and not self.why

    @property
    def stdout(self):
        return "".join(self.output)

    @property
    def text(self):
        """stdout and stderr, in the order in which they came."""
        return "".join(self.lines)

    @property
    def last_line(self):
        said = [line.strip() for line in self.lines if line.strip()]
        return self.why or (said[-1] if said else f"exit code {self.code}")


class Processes:
    """Runs processes, `deadline` (of time.monotonic) in mind. Threads may run one each, with logs of their own."""

    def __init__(self, logs, deadline):
        self.logs, self.deadline = logs, deadline
        os.makedirs(logs, exist_ok=True)

    def left(self):
        return self.deadline - time.monotonic()

    def run(self, log, command, limit, quiet=None, environment=()):
        """Runs `command`, in a group of its own, for `limit` seconds at most, and without a word for
        `quiet` at most. Its lines go to the file `log` as they come. Throws OutOfTime when the
        deadline ended it, or had come before."""
        done, heard = Finished(), [time.monotonic()]
        with open(os.path.join(self.logs, log + ".log"), "a", encoding="utf-8", errors="replace") as file:
            if self.left() <= 0:
                raise OutOfTime()
            print("$", *command, file=file, flush=True)
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       errors="replace", env=os.environ | dict(environment), start_new_session=True)
            lock = threading.Lock()

            def keep(stream, own):
                with stream:
                    for line in stream:
                        with lock:
                            heard[0] = time.monotonic()
                            for lines in own:
                                lines.append(line)
                            print(line, end="", file=file, flush=True)

            readers = [threading.Thread(target=keep, args=arguments, daemon=True)
                       for arguments in ((process.stdout, (done.output, done.lines)), (process.stderr, (done.lines,)))]
            for reader in readers:
                reader.start()
            try:
                late = self.watch(process, heard, limit, quiet, done)
                for reader in readers:
                    reader.join(GRACE_SECONDS)
            finally:
                end_group(process)  # also who still holds the pipes
                for reader in readers:
                    reader.join()
            done.code = process.returncode
            print(f"{done.why or 'exit code ' + str(done.code)}\n", file=file, flush=True)
        if late:
            raise OutOfTime(done.output)
        return done

    def note(self, log, text):
        """Adds `text` to the file `log`."""
        with open(os.path.join(self.logs, log + ".log"), "a", encoding="utf-8", errors="replace") as file:
            print(text, file=file)

    def watch(self, process, heard, limit, quiet, done):
        """Waits for `process`, and ends it when its time is over; whether the deadline came."""
        begin = time.monotonic()
        while True:
            try:
                process.wait(timeout=0.1)
                return False
            except subprocess.TimeoutExpired:
                now = time.monotonic()
            if self.left() <= 0:
                done.why = "stopped at the deadline"
            elif now - begin > limit:
                done.why = f"stopped after {limit:g} s"
            elif quiet and now - heard[0] > quiet:
                done.why = f"stopped after {quiet:g} s without a word"
            if done.why:
                end(process)
                return self.left() <= 0


def end(process):
    """Tells the whole group to end, then ends it."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    end_group(process)


def end_group(process):
    """Ends who is left of the group, and waits for `process`."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
