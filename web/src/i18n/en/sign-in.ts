export const signIn = {
  title: "Sign in",
  withIssuer: "Sign in with {host}",
  or: "or with a token",
  token: "Token",
  tokenHelp: "Kept until this tab is closed or you sign out, and sent to this server alone.",
  noToken: "Where do I get a token?",
  help: "An administrator makes one under Administration, or with “astrago tokens create”. The very first one is in the file admin-token of the server's data folder.",
  submit: "Sign in",
  refused: "The server does not know this token, or it is too old.",
  left: "You are signed out.",
  ended:
    "Your session has ended: the server does not take your token any more. Sign in again to go on where you were.",
  expired: "Your session has ended: its time is over. Sign in again to go on where you were.",
  insecure:
    "The browser lets this page not sign in with an identity provider, because it came over plain HTTP. Open it over HTTPS, or use a token.",
  issuer:
    "The identity provider does not answer as it should. Try again, or use a token; an administrator may have to look at its settings.",
  denied: "The identity provider did not let you in. Try again, or use a token.",
  stale: "This sign-in was not begun in this tab, or has been used already. Begin again.",
  forged: "The answer of the identity provider does not belong to this sign-in. Begin again.",
  noAccount: "New here?",
  signUp: "Sign up",
  user: "User name",
  userHelp: "Small letters, digits and dashes; the names of your jobs and your namespace begin with it.",
  haveToken: "I have a token",
  welcome: "Welcome, {name}",
  keepToken:
    "Your namespace is {namespace}, and this is your token. It is shown this once: keep it where you keep passwords.",
  goOn: "I have kept it: go on",
} as const;
