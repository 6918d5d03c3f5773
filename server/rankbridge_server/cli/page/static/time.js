// The clock of the host that serves the page: this one's may differ.

let ahead = null;

// A message was sent at that time. The quickest one says most.
export function heard(at) {
  const apart = at - Date.now() / 1000;
  ahead = ahead === null || apart > ahead ? apart : ahead + (apart - ahead) * 0.02;
}

export const now = () => Date.now() / 1000 + (ahead ?? 0);
