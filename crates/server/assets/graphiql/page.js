// Asks for the token, checks it, and hands it to GraphiQL for requests and for the WebSocket.
const KEY = "tidegate-token";
const url = "/graphql";
const form = document.getElementById("login");
const problem = document.getElementById("problem");
const START = `# Every kind has typed fields, and the generic ones take any kind.
query Namespaces {
  namespaces {
    resourceVersion
    nodes { metadata { name resourceVersion } status { phase } }
  }
}

subscription Watch {
  watchNamespaces(sendInitialEvents: true) {
    type
    resourceVersion
    initialEventsEnd
    object { metadata { name } }
  }
}
`;

async function check(token) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: "{ whoami { user } }" }),
  });
  const body = await response.json();
  if (body.errors) throw new Error(body.errors[0].message);
}

function open(token) {
  const authorization = `Bearer ${token}`;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const fetcher = GraphiQL.createFetcher({
    url,
    headers: { authorization },
    subscriptionUrl: `${scheme}://${location.host}${url}`,
    wsConnectionParams: { authorization },
  });
  form.hidden = true;
  const root = document.getElementById("graphiql");
  root.hidden = false;
  ReactDOM.createRoot(root).render(React.createElement(GraphiQL, { fetcher, defaultQuery: START, shouldPersistHeaders: false }));
}

async function login(token) {
  try {
    await check(token);
    sessionStorage.setItem(KEY, token);
    open(token);
  } catch (error) {
    sessionStorage.removeItem(KEY);
    problem.textContent = error.message;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  login(document.getElementById("token").value.trim());
});

const kept = sessionStorage.getItem(KEY);
if (kept) login(kept);
