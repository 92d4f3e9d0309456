"""The log of inject.cpp played back onto a disk that may lose what was not synced."""


def read_log(path):
    """Records as (name, [path…], [number…], bytes)."""
    data, at, records = path.read_bytes(), 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        name, *words = data[at:end].decode().split(" ")
        at = end + 1
        paths = 2 if name == "rename" else 1
        names = [bytes.fromhex(word).decode() for word in words[:paths]]
        numbers = [int(word) for word in words[paths:]]
        content = b""
        if name == "write":
            content = data[at:at + numbers[1]]
            at += numbers[1]
        records.append((name, names, numbers, content))
    return records


def apply(content, operation):
    """One write or truncation on the bytes of a file."""
    name, numbers, data = operation
    if name == "truncate":
        del content[numbers[0]:]
        content.extend(bytes(numbers[0] - len(content)))
    else:
        content.extend(bytes(max(0, numbers[0] - len(content))))
        content[numbers[0]:numbers[0] + len(data)] = data


class Disk:
    """Files as a journaling file system may find them: what was synced, and what was done since."""

    def __init__(self):
        self.files = {}  # number: [durable bytes, pending operations]
        self.names, self.durable_names, self.pending_names = {}, {}, []  # path: number or None for a folder
        self.numbers = 0

    def change(self, operation):
        self.pending_names.append(operation)
        self.link(self.names, operation)

    @staticmethod
    def link(names, operation):
        name, path, number = operation
        if name == "unlink":
            names.pop(path, None)
        elif name == "rename":
            names[number] = names.pop(path)
        else:
            names[path] = number

    def play(self, record):
        name, paths, numbers, content = record
        if name == "mkdir":
            self.change(("make", paths[0], None))
        elif name == "create" and paths[0] not in self.names:
            self.numbers += 1
            self.files[self.numbers] = [bytearray(), []]
            self.change(("make", paths[0], self.numbers))
        elif name == "create" and numbers[0]:
            self.files[self.names[paths[0]]][1].append(("truncate", [0], b""))
        elif name in ("write", "truncate"):
            self.files[self.names[paths[0]]][1].append((name, numbers, content))
        elif name == "rename":
            self.change(("rename", paths[0], paths[1]))
        elif name == "unlink":
            self.change(("unlink", paths[0], None))
        elif name == "sync":
            self.sync(paths[0])

    def sync(self, path):
        number = self.names.get(path)
        if number is None:  # a folder; the journal keeps its operations in order
            self.keep_names(len(self.pending_names))
            return
        content, pending = self.files[number]
        for operation in pending:
            apply(content, operation)
        pending.clear()
        made = [i for i, (_, at, what) in enumerate(self.pending_names) if path in (at, what)]
        if made:  # a synced file has a name
            self.keep_names(made[-1] + 1)

    def keep_names(self, count):
        for operation in self.pending_names[:count]:
            self.link(self.durable_names, operation)
        del self.pending_names[:count]

    def cut(self, folder, rng):
        """Writes what may be left."""
        self.keep_names(rng.randint(0, len(self.pending_names)))
        for path in sorted(self.durable_names):
            number, target = self.durable_names[path], folder / path
            if number is None:
                target.mkdir(parents=True, exist_ok=True)
                continue
            content, pending = self.files[number]
            left = bytearray(content)
            for operation in pending[:rng.randint(0, len(pending))]:
                apply(left, operation)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(left)
